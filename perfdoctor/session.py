"""Conducts a run: target, probes beside the driver, phases, and a folder that is sealed whatever happens.

Knows the order of things and nothing of their content. Judging is not its business.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from perfdoctor import __version__, interrupts, preflight, stages, store
from perfdoctor.clock import Clock
from perfdoctor.errors import PerfdoctorError
from perfdoctor.loadgen import headroom, loop, schedule, way
from perfdoctor.local import models
from perfdoctor.local.launch import LocalServer
from perfdoctor.local.patient import launched
from perfdoctor.model import Phase, RunFacts, Scenario, TargetFacts
from perfdoctor.probes import _calibrate, _host, _processes, _residency, _sampler
from perfdoctor.progress import Watch
from perfdoctor.redact import header_secrets, url_secrets
from perfdoctor.stages import Conduct, Orders

ENGINE_HZ = 1.0
WATCH_S = 20.0
TICK_S = 0.25
MAX_LOOK_S = 5.0  # at a server at rest; py-spy takes a second and its start


def conduct(orders: Orders, watch: Watch) -> Path:
    """Make one run and return its folder, sealed as complete or interrupted.

    Raises the TargetError family when the target cannot be driven; a folder made before that is sealed as
    failed and keeps what was measured.
    """
    run = Conduct(orders, watch, orders.patient.clock if orders.patient else Clock())
    facts = _opening_facts(run)
    writer = store.create_run(facts, orders.out, _secrets(orders))
    state, error = "failed", None
    try:
        _collect(run, writer)
        state = "interrupted" if run.interrupted else "complete"
    except KeyboardInterrupt:
        run.interrupted, state = True, "interrupted"
    except PerfdoctorError as failure:
        error = failure
        failure.do += (
            f"; this run is kept in {writer.path}" if failure.do else f"this run is kept in {writer.path}"
        )
        writer.log_exception(failure)
        raise
    except BaseException as failure:
        writer.log_exception(failure)
        raise
    finally:
        with interrupts.shield():
            if run.server and not orders.patient:
                run.server.stop()
            writer.seal(
                state=state,
                phases=tuple(run.phases),
                notes=tuple(run.notes),
                recorded_s=run.clock.now(),
                error=error.what if error else None,
            )
    return writer.path


def _secrets(orders: Orders) -> tuple[str, ...]:
    target = orders.scenario.target
    found = [orders.secret or "", *header_secrets(target.headers), *url_secrets(target.endpoint or "")]
    return tuple(s for s in found if s)


def _opening_facts(run: Conduct) -> RunFacts:
    """The facts known before the first byte is measured. The target is looked at here, so that nothing is
    left behind when an endpoint does not answer or a model cannot be served."""
    scenario = run.orders.scenario
    if scenario.load.arrival != "none":
        schedule.check(scenario.load)
        way.check_contents(scenario.target, scenario.load)
        headroom.make_room(scenario.load, scenario.target)
    target = TargetFacts(kind="local", engine="perfdoctor-local", model=scenario.target.model)
    if scenario.target.endpoint:
        run.watch.begin(f"Looking at {preflight.address(scenario.target)}", "about 1 s")
        target = preflight.discover(scenario.target, run.orders.secret)
        scenario = _with_target(scenario, endpoint=target.url, served_name=target.model)
    elif scenario.target.model:
        models.look(scenario.target.model)
    return RunFacts(
        perfdoctor=__version__,
        command=run.orders.command,
        argv=run.orders.argv,
        wall_zero=run.clock.wall_zero,
        zero_ns=run.clock.zero_ns,
        scenario=scenario,
        target=target,
        host=_host.host_facts(),
    )


def _with_target(scenario: Scenario, **changes: Any) -> Scenario:
    target = msgspec.structs.replace(scenario.target, **changes)
    return msgspec.structs.replace(scenario, target=target)


# ------------------------------------------------------------------------------ collecting


def _collect(run: Conduct, writer: store.RunWriter) -> None:
    load = writer.facts.scenario.load
    watches = load.arrival == "none"  # somebody else's traffic: nothing may be added to it, no calibration
    calibrated = run.orders.probes and not writer.facts.target.remote and not watches
    if calibrated:
        run.watch.begin("Measuring what this machine's memory can do", "about 1 s")
        writer.update(calibration=_calibrate.calibrate())
    with _sampling(run, writer) as (subject, sampler), _listening(run, writer):
        if run.orders.patient:
            _adopt(run, writer, subject)
        elif writer.facts.target.kind == "local":
            _serve_model(run, writer, subject)
        elif sampler and not watches:
            run.watch.begin("Looking at the server while nobody asks", "about 2 s")
            _await_first_readings(sampler)
        if watches:
            _watch(run, writer, load.duration_s or WATCH_S)
        else:
            loop.run(stages.drive(run, writer, writer.facts.scenario.load))
    _look_where_the_model_is(run, writer)
    if calibrated and not run.interrupted:
        run.watch.begin("Measuring the memory again", "about 1 s")
        writer.update(calibration=_best(writer.facts.calibration, _calibrate.calibrate()))


def _look_where_the_model_is(run: Conduct, writer: store.RunWriter) -> None:
    """Once more, after the load: a server may have loaded it for the first request."""
    facts = writer.facts.target
    if facts.kind == "endpoint" and run.orders.probes and not run.interrupted:
        share = preflight.placement(writer.facts.scenario.target, facts, run.orders.secret)
        if share != facts.on_host_share:
            writer.update(target=msgspec.structs.replace(facts, on_host_share=share))


def _watch(run: Conduct, writer: store.RunWriter, seconds: float) -> None:
    """The probes alone, beside the traffic that is there. What was seen until a Ctrl-C is kept."""
    run.watch.begin("Watching the traffic that is there", f"{seconds:.0f} s")
    start_s = run.clock.now()
    try:
        while (left_s := start_s + seconds - run.clock.now()) > 0:
            time.sleep(min(TICK_S, left_s))
            writer.check()
    finally:
        run.phases.append(Phase(name="watch", start_s=start_s, end_s=run.clock.now()))


def _best(*calibrations: dict[str, float | None]) -> dict[str, float | None]:
    """Of each ceiling the highest reading: other work on the machine can hide one, nothing can raise it."""
    best: dict[str, float | None] = {}
    for name, rate in (pair for found in calibrations for pair in found.items()):
        best[name] = max(rate or 0.0, best.get(name) or 0.0) or None
    return best


@contextlib.contextmanager
def _sampling(
    run: Conduct, writer: store.RunWriter
) -> Iterator[tuple[_sampler.Subject, _sampler.Sampler | None]]:
    """Probes run inside; their states and metric table reach run.json at the end, come what may."""
    target = writer.facts.target
    subject = _sampler.Subject(
        pid=target.pid,
        url=target.url or None,
        model_path=target.model_path,
        remote=target.remote,
        engine=target.engine,
        log=writer.facts.scenario.target.log,
    )
    scenario = writer.facts.scenario
    if target.kind == "endpoint":
        subject.transport = partial(preflight.transport, scenario.target.wire)
    rates = scenario.probes
    if not run.orders.probes:  # a load test asks the server for its own view, and nothing else
        if scenario.target.api == "http":
            yield subject, None
            return
        rates = {probe.name: 0.0 for probe in _sampler.discover()} | {"engine": ENGINE_HZ}
    sampler = _sampler.Sampler(subject, run.clock, writer.append_sample, writer.append_stacks, rates)
    sampler.start()
    try:
        yield subject, sampler if run.orders.probes else None
    finally:
        with interrupts.shield():
            states = sampler.stop()
            writer.update(probes=states, metrics=sampler.metrics)


@contextlib.contextmanager
def _listening(run: Conduct, writer: store.RunWriter) -> Iterator[None]:
    """To a local server that was there before the run and goes on after it."""
    if run.orders.patient is None:
        yield
        return
    with run.orders.patient.heard_by(writer.append_sample):
        yield


def _await_first_readings(sampler: _sampler.Sampler) -> None:
    """One reading of every probe before the first request: what the server does unasked is not the load's."""
    ends_s = time.monotonic() + MAX_LOOK_S
    while time.monotonic() < ends_s and not sampler.settled(patient=False):
        time.sleep(0.05)


def _serve_model(run: Conduct, writer: store.RunWriter, subject: _sampler.Subject) -> None:
    target = writer.facts.scenario.target
    start_s = run.clock.now()
    run.watch.begin(f"Loading {target.model} in a child process", "first time up to a minute")

    def on_facts(found: TargetFacts) -> None:
        """Called once before the weights are read: the page cache is looked at while it is untouched."""
        share = _residency.resident_share(_weight_files(found.model_path))
        writer.update(target=msgspec.structs.replace(found, file_resident_share=share))
        subject.model_path = found.model_path

    def on_spawn(pid: int) -> None:
        subject.pid = pid

    run.server = launched(
        target.model or "tiny",
        target.options,
        run.clock,
        writer.append_sample,
        writer.log,
        on_spawn=on_spawn,
        on_facts=on_facts,
        prefix=run.orders.prefix,
    )
    subject.url = run.server.url
    run.phases.append(Phase(name="load", start_s=start_s, end_s=run.clock.now()))
    _note_server(run, writer, run.server)


def _adopt(run: Conduct, writer: store.RunWriter, subject: _sampler.Subject) -> None:
    patient = run.orders.patient
    assert patient and patient.server
    run.server = patient.server
    subject.pid, subject.url, subject.model_path = run.server.pid, run.server.url, run.server.facts.model_path
    _note_server(run, writer, run.server)


def _note_server(run: Conduct, writer: store.RunWriter, server: LocalServer) -> None:
    share = writer.facts.target.file_resident_share
    found = msgspec.structs.replace(
        server.facts, file_resident_share=share, pids=_processes.process_tree(server.pid)
    )
    writer.update(
        target=found,
        scenario=_with_target(writer.facts.scenario, endpoint=found.url, served_name=found.model),
        calibration=writer.facts.calibration | server.calibration,
    )


def _weight_files(folder: str | None) -> tuple[Path, ...]:
    return tuple(sorted(Path(folder).glob("*.safetensors"))) if folder else ()
