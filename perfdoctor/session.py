"""Conducts a run: target, probes beside the driver, phases, and a folder that is sealed whatever happens.

Knows the order of things and nothing of their content. Judging is not its business.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from perfdoctor import __version__, preflight, store
from perfdoctor.clock import Clock
from perfdoctor.errors import PerfdoctorError, ServerDied
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.local.launch import LocalServer, launch
from perfdoctor.model import Load, Phase, RequestRecord, RunFacts, Scenario, TargetFacts
from perfdoctor.probes import _calibrate, _host, _processes, _residency, _sampler
from perfdoctor.progress import Watch
from perfdoctor.redact import url_secrets

TICK_S = 0.25
MIN_STEADY_REQUESTS = 12  # a slow model gets more time until this many have a chance to finish
MAX_STEADY_S = 180.0
PROFILED_STEPS = 16


@dataclass(frozen=True, slots=True)
class Orders:
    """What the command line asked for, beyond the scenario."""

    scenario: Scenario
    command: str
    argv: tuple[str, ...] = ()
    out: Path | None = None
    secret: str | None = None
    probes: bool = True
    prefix: tuple[str, ...] = ()  # put before the local child's command line (a fault to inject)


@dataclass(slots=True)
class Conduct:
    """The state of one run while it is being made."""

    orders: Orders
    watch: Watch
    clock: Clock = field(default_factory=Clock)
    phases: list[Phase] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    server: LocalServer | None = None
    interrupted: bool = False


def conduct(orders: Orders, watch: Watch) -> Path:
    """Make one run and return its folder, sealed as complete or interrupted.

    Raises the TargetError family when the target cannot be driven; a folder made before that is sealed as
    failed and keeps what was measured.
    """
    run = Conduct(orders, watch)
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
        writer.log_exception(failure)
        raise
    except BaseException as failure:
        writer.log_exception(failure)
        raise
    finally:
        watch.end()
        with _no_interrupt():
            if run.server:
                run.server.stop()
            writer.seal(
                state=state,
                phases=tuple(run.phases),
                notes=tuple(run.notes),
                error=error.what if error else None,
            )
    return writer.path


def _secrets(orders: Orders) -> tuple[str, ...]:
    target = orders.scenario.target
    found = [orders.secret or "", *target.headers.values(), *url_secrets(target.endpoint or "")]
    return tuple(s for s in found if s)


def _opening_facts(run: Conduct) -> RunFacts:
    """The facts known before the first byte is measured. An endpoint is looked at here, so that nothing is
    left behind when it does not answer."""
    scenario = run.orders.scenario
    target = TargetFacts(kind="local", engine="perfdoctor-local", model=scenario.target.model)
    if scenario.target.endpoint:
        run.watch.begin(f"Looking at {scenario.target.endpoint}", "about 1 s")
        target = preflight.discover(scenario.target, run.orders.secret)
        scenario = _with_target(scenario, endpoint=target.url, served_name=target.model)
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
    if run.orders.probes:
        run.watch.begin("Measuring this machine's memory copy ceiling", "about 1 s")
        writer.update(calibration=_calibrate.calibrate())
    with _sampling(run, writer) as subject:
        if writer.facts.target.kind == "local":
            _serve_model(run, writer, subject)
        scenario = writer.facts.scenario
        loop.run(_drive(run, writer, scenario.load))


@contextlib.contextmanager
def _sampling(run: Conduct, writer: store.RunWriter) -> Iterator[_sampler.Subject]:
    """Probes run inside; their states and metric table reach run.json at the end, come what may."""
    target = writer.facts.target
    subject = _sampler.Subject(
        pid=target.pid,
        url=target.url or None,
        model_path=target.model_path,
        remote=target.remote,
        engine=target.engine,
    )
    if not run.orders.probes:
        yield subject
        return
    sampler = _sampler.Sampler(
        subject, run.clock, writer.append_sample, writer.append_stacks, writer.facts.scenario.probes
    )
    sampler.start()
    try:
        yield subject
    finally:
        with _no_interrupt():
            states = sampler.stop()
            writer.update(probes=states, metrics=sampler.metrics)


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

    run.server = launch(
        target.model or "tiny",
        run.clock,
        emit=writer.append_sample,
        log=writer.log,
        on_spawn=on_spawn,
        on_facts=on_facts,
        device=target.options.get("device"),
        dtype=target.options.get("dtype"),
        threads=int(target.options["threads"]) if "threads" in target.options else None,
        prefix=run.orders.prefix,
    )
    subject.url = run.server.url
    run.phases.append(Phase(name="load", start_s=start_s, end_s=run.clock.now()))
    share = writer.facts.target.file_resident_share
    found = msgspec.structs.replace(
        run.server.facts, file_resident_share=share, pids=_processes.process_tree(run.server.pid)
    )
    writer.update(
        target=found,
        scenario=_with_target(writer.facts.scenario, endpoint=found.url, served_name=found.model),
        calibration=writer.facts.calibration | run.server.calibration,
    )


def _weight_files(folder: str | None) -> tuple[Path, ...]:
    return tuple(sorted(Path(folder).glob("*.safetensors"))) if folder else ()


# ------------------------------------------------------------------------------ driving


async def _drive(run: Conduct, writer: store.RunWriter, load: Load) -> None:
    target = writer.facts.scenario.target

    def emit(record: RequestRecord) -> None:
        writer.append_request(record)

    async with Driver(target, load, run.clock, emit, run.orders.secret) as driver:
        with _interrupts(run, driver):
            async for stage, title in _stages(run, driver, load):
                await _run_stage(run, writer, driver, stage, title)
                if run.interrupted or driver.aborted:
                    break
        writer.update(client=driver.client_facts())
        if driver.aborted and not run.interrupted:
            raise driver.aborted


async def _stages(run: Conduct, driver: Driver, load: Load) -> Any:
    """The phases in order. The steady phase's length is chosen after the baseline has shown the pace."""
    if load.warmup_requests:
        yield Stage("warmup", 1, requests=load.warmup_requests), "Warming up"
    if load.baseline_requests:
        yield Stage("baseline", 1, requests=load.baseline_requests), "Baseline, one request at a time"
    duration_s = _steady_duration(run, load)
    title = f"Load, {load.concurrency} at a time"
    yield Stage("steady", load.concurrency, requests=load.requests, duration_s=duration_s), title
    if run.server and run.orders.probes:
        headers = {"X-Perfdoctor-Profile": str(PROFILED_STEPS)}
        tokens = max(load.output_tokens, 3 * PROFILED_STEPS)
        stage = Stage("profile", 1, requests=1, headers=headers, output_tokens=tokens)
        yield stage, "Profiling a few decode steps"


def _steady_duration(run: Conduct, load: Load) -> float | None:
    """Long enough for a dozen answers at the pace of the baseline, up to three minutes."""
    baseline = next((p for p in run.phases if p.name == "baseline"), None)
    if load.duration_s is None or load.requests is not None or baseline is None:
        return load.duration_s
    pace_s = (baseline.end_s - baseline.start_s) / max(1, load.baseline_requests)
    return min(MAX_STEADY_S, max(load.duration_s, MIN_STEADY_REQUESTS * pace_s))


async def _run_stage(run: Conduct, writer: store.RunWriter, driver: Driver, stage: Stage, title: str) -> None:
    length = f"{stage.duration_s:.0f} s" if stage.duration_s else f"{stage.requests} requests"
    run.watch.begin(title, length)
    task = asyncio.create_task(driver.run_stage(stage))
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=TICK_S)
            run.watch.tick(driver.snapshot())
            writer.check()
            if run.server and not run.server.alive() and not task.done():
                raise ServerDied(
                    "the local model server died while it was being measured",
                    "Its last words are in log.txt of the run folder.",
                    f"perfdoctor report {writer.path}",
                )
    except BaseException:
        driver.request_stop()
        driver.request_stop()
        await asyncio.wait({task}, timeout=5)
        raise
    phase = task.result()
    run.phases.append(phase)
    writer.update(phases=tuple(run.phases))


@contextlib.contextmanager
def _interrupts(run: Conduct, driver: Driver) -> Iterator[None]:
    """First Ctrl-C: finish what is open and seal. Second: cancel it. SIGTERM counts as the first."""
    running = asyncio.get_running_loop()

    def stop() -> None:
        if not run.interrupted:
            run.watch.note("Stopping: open requests may finish. Ctrl-C again cancels them.")
        run.interrupted = True
        driver.request_stop()

    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        running.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in signals:
            running.remove_signal_handler(number)


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Sealing must not be cut off by an impatient Ctrl-C; it takes well under a second."""
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def own_argv() -> tuple[str, ...]:
    return tuple(sys.argv[1:])
