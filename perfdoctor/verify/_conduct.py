"""Tries one fix: starts both sides, asks both the same, diagnoses each, then drives them in turn."""

from __future__ import annotations

import contextlib
import dataclasses
import os.path
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from perfdoctor import __version__, compare, disk, folders, interrupts, preflight, session, store, units
from perfdoctor.errors import PerfdoctorError, TargetError
from perfdoctor.model import Load, Outputs, Scenario, SideName, Target, TriedRun, TriedSide, Verification
from perfdoctor.probes import _host
from perfdoctor.progress import Watch
from perfdoctor.stages import Orders
from perfdoctor.verify import _ask, _folder, _loading
from perfdoctor.verify._command import CommandSide, check_free
from perfdoctor.verify._order import pairs_of, sequence
from perfdoctor.verify._plan import Plan, about_s, described
from perfdoctor.verify._side import Bench, EndpointSide, LocalSide, Log, Side, died

LEDGER_S = 4.0  # of load for the diagnosis of a side: its shares, not its speed, are wanted
MOST_S = 30.0  # of a run that is made longer because answers take long
ANSWERS = 4  # at least in a run, and one of each user
MOST_MORE = 3  # pairs made in place of those that cannot be trusted
SIDES: tuple[SideName, SideName] = ("before", "after")


@dataclass(slots=True)
class Known:
    """What a side said and was diagnosed as; several fixes may share a before side."""

    asked: _ask.Asked | None = None
    ledger: Path | None = None
    side: TriedSide | None = None


@dataclass(slots=True)
class Trying:
    plan: Plan
    watch: Watch
    folder: Path
    bench: Bench
    found: Verification
    known: dict[SideName, Known] = field(default_factory=dict)

    def update(self, **changes: object) -> None:
        self.found = msgspec.structs.replace(self.found, **changes)
        _folder.write(self.folder, self.found)


def conduct(plan: Plan, watch: Watch) -> tuple[Path, Verification]:
    """Raises what kept a side from being tried; the folder then says so too, and keeps what was measured."""
    _look(plan)
    folder = folders.given(plan.out) if plan.out else folders.fresh("verify")
    bench = Bench(sides_of(plan, folder), together=_ports_differ(plan))
    try:
        return folder, try_fix(plan, watch, folder, bench, {})
    finally:
        with interrupts.shield():
            bench.stop()


def _look(plan: Plan) -> None:
    """What can be known before anything is started: ports that are taken, endpoints that do not answer."""
    for command, name in zip(plan.commands or (), SIDES, strict=False):
        check_free(command.port, name)
    for side in (plan.before, plan.after):
        if side.endpoint:
            target = msgspec.structs.replace(plan.scenario.target, endpoint=side.endpoint)
            preflight.discover(target, plan.secret)


def try_fix(
    plan: Plan, watch: Watch, folder: Path, bench: Bench, known: dict[SideName, Known]
) -> Verification:
    """On sides that may be up already, and that stay up."""
    trying = Trying(plan, watch, folder, bench, _opening(plan, folder), known)
    state = "failed"
    try:
        with disk.claim(folder):
            trying.update()
            _try(trying)
            state = "complete"
    except KeyboardInterrupt:
        state = "interrupted"
    except PerfdoctorError as error:
        trying.found = msgspec.structs.replace(trying.found, error=error.what)
        error.do += f"; what was measured before is kept in {folder}"
        raise
    finally:
        with interrupts.shield():
            notes = (*trying.found.notes, *bench.notes)
            found = msgspec.structs.replace(trying.found, state=state, notes=notes)
            trying.found = _folder.settled(found, folder)
            _folder.write(folder, trying.found)
    return trying.found


def sides_of(plan: Plan, folder: Path) -> tuple[Side, Side]:
    logs = [Log(folder / f"{name}.log") for name in SIDES]
    if plan.commands:
        before, after = plan.commands
        return (
            CommandSide("before", before, logs[0], plan.secret, plan.ready_s),
            CommandSide("after", after, logs[1], plan.secret, plan.ready_s),
        )
    if plan.before.endpoint and plan.after.endpoint:
        return EndpointSide("before", plan.before.endpoint), EndpointSide("after", plan.after.endpoint)
    model = plan.scenario.target.model or ""
    return (
        LocalSide("before", model, plan.before.settings, logs[0]),
        LocalSide("after", model, plan.after.settings, logs[1]),
    )


def _ports_differ(plan: Plan) -> bool:
    """Two servers on one port cannot both be up."""
    if plan.commands is None:
        return True
    before, after = plan.commands
    return before.port is None or before.port != after.port


def _opening(plan: Plan, folder: Path) -> Verification:
    host = _host.host_facts()
    gpus = ", ".join(gpu.name for gpu in host.gpus)
    cpu = f"{host.cpu}, {host.cores} cores".strip(", ")
    fix = plan.fix
    return Verification(
        verify=folder.name,
        perfdoctor=__version__,
        argv=plan.argv,
        fix=plan.name,
        title=fix.title if fix else "",
        claim=fix.claim if fix else "",
        promised=fix.promised if fix else {},
        catalogue=fix.verdict if fix else "",
        model=plan.scenario.target.model or "",
        hardware=gpus or cpu,
        load=described(plan.load),
        seed=plan.load.seed,
        pairs=plan.pairs,
        before=plan.before,
        after=plan.after,
        metric="load_s" if plan.of_loading else "e2e_mean",
    )


def _try(trying: Trying) -> None:
    plan, watch = trying.plan, trying.watch
    runs = 2 * plan.pairs + 1
    watch.note(
        f"Trying {plan.name}: {runs} runs in turn, {described(plan.load)}; "
        f"about {units.seconds(about_s(plan))} after both sides are up"
    )
    for name in SIDES:  # what does not start is said before anything is measured
        _side(trying, name)
    for name in SIDES:
        _know(trying, name)
    trying.update(outputs=_outputs(trying))
    if plan.of_loading:
        _try_loading(trying)
        return
    load = _long_enough(trying)
    trying.update(load=described(load))
    for number, run in enumerate(sequence(plan.pairs + MOST_MORE, load.seed), 1):
        if run.pair > plan.pairs and len(pairs_of(trying.found.runs)) >= plan.pairs:
            break
        _run(trying, run, load, f"Run {number} of {max(number, runs)}: {run.side}")


def _try_loading(trying: Trying) -> None:
    """Both sides were up for their answers; each run starts one again."""
    files, runs = _loading.files_of(trying.plan.scenario.target.model or ""), 2 * trying.plan.pairs + 1
    trying.update(
        load=f"{units.size_bytes(sum(path.stat().st_size for path in files))} of weights, not in memory"
    )
    for number, run in enumerate(sequence(trying.plan.pairs, trying.plan.load.seed), 1):
        trying.bench.stop()
        if (why := _loading.evict(files)) and why not in trying.found.notes:
            trying.update(notes=(*trying.found.notes, why))
        trying.watch.begin(f"Run {number} of {runs}: loading, {run.side}")
        side, _ = trying.bench.use(run.side)
        assert side.patient
        value = _loading.load_s(side.patient.loading)
        trying.update(runs=(*trying.found.runs, msgspec.structs.replace(run, value=value)))


def _side(trying: Trying, name: SideName) -> Side:
    """Up; says so where it had to be started."""
    if not trying.bench.side(name).up:
        trying.watch.begin(f"Starting the {name} side", "first time up to a minute")
    side, started = trying.bench.use(name)
    if started:
        trying.update(**{name: _kept(getattr(trying.found, name), side.tried)})
    return side


def _kept(had: TriedSide, now: TriedSide) -> TriedSide:
    return msgspec.structs.replace(had, start_s=now.start_s, compile_s=now.compile_s)


# ------------------------------------------------------------------------------ what a side says and is


def _know(trying: Trying, name: SideName) -> None:
    """Its greedy answers and its diagnosis, unless they are known from a fix before."""
    known = trying.known.setdefault(name, Known())
    if known.asked is None:
        side = _side(trying, name)
        trying.watch.begin(f"Asking the {name} side {len(_ask.QUESTIONS)} questions, greedily", "")
        scenario = _scenario(trying, side, trying.plan.load)
        with _of_side(side):
            address = _address(scenario, side, trying.plan.secret)
            known.asked = _ask.ask_all(address, trying.plan.secret, trying.plan.load)
    if known.ledger is None:
        known.ledger = _diagnose(trying, name)
    if known.side is None:
        known.side = msgspec.structs.replace(
            getattr(trying.found, name),
            first_answer_s=known.asked.first_s,
            next_answer_s=known.asked.next_s,
        )
    ledger = _below(trying.folder, known.ledger)
    trying.update(**{name: msgspec.structs.replace(known.side, ledger=ledger)})
    if not trying.found.versions:
        target = store.open_run(known.ledger).facts.target
        trying.update(
            versions=target.engine_version or target.engine, model=trying.found.model or target.model or ""
        )


def _below(folder: Path, path: Path) -> str:
    """A path that goes on to hold when all is moved together."""
    return os.path.relpath(path, folder)


def _address(scenario: Scenario, side: Side, secret: str | None) -> Target:
    """Where the side answers, and to which name."""
    server = side.patient.server if side.patient else None
    if server is None:
        facts = preflight.discover(scenario.target, secret)
        return msgspec.structs.replace(scenario.target, endpoint=facts.url, served_name=facts.model)
    return msgspec.structs.replace(scenario.target, endpoint=server.url, served_name=server.facts.model)


def _diagnose(trying: Trying, name: SideName) -> Path:
    load = trying.plan.load
    alone = 2 if load.concurrency > 1 else 0  # requests one at a time, which one user's are anyway
    load = msgspec.structs.replace(load, duration_s=LEDGER_S, requests=None, baseline_requests=alone)
    side = _side(trying, name)
    trying.watch.begin(f"Diagnosing the {name} side", "about 15 s")
    out = trying.folder / "ledgers" / name
    if trying.plan.of_loading:  # to be seen by a run that starts it; nobody else may hold the files
        trying.bench.stop()
        _loading.evict(_loading.files_of(trying.plan.scenario.target.model or ""))
        orders = dataclasses.replace(_orders(trying, side, load, out, "diagnose"), patient=None)
        _conduct_run(trying, side, orders)
        return out
    _conduct_run(trying, side, _orders(trying, side, load, out, "diagnose"))
    return out


def _outputs(trying: Trying) -> Outputs:
    before, after = (trying.known[name].asked for name in SIDES)
    assert before and after
    return _ask.compare(before, after)


def _long_enough(trying: Trying) -> Load:
    """A run holds a few answers, however slow the slower side is."""
    load = trying.plan.load
    if load.duration_s is None:
        return load
    slowest_s = max((_e2e_s(known.ledger) for known in trying.known.values() if known.ledger), default=0.0)
    least_s = min(MOST_S, max(1.0, ANSWERS / load.concurrency) * slowest_s)
    return msgspec.structs.replace(load, duration_s=max(load.duration_s, least_s))


def _e2e_s(ledger: Path) -> float:
    return compare.mean_answer_s(compare.read_run(ledger), False) or 0.0


# ------------------------------------------------------------------------------ the runs


def _run(trying: Trying, run: TriedRun, load: Load, title: str) -> None:
    warm = trying.bench.side(run.side).up
    side = _side(trying, run.side)
    run = msgspec.structs.replace(run, run=f"{run.side}/{run.pair:02}")
    before = trying.found.runs
    trying.update(runs=(*before, run))
    load = msgspec.structs.replace(
        load,
        seed=load.seed + run.pair,  # both sides of a pair are asked the same
        warmup_requests=0 if warm and load.concurrency == 1 else load.warmup_requests,
    )
    trying.watch.begin(title, units.seconds(load.duration_s) if load.duration_s else "")
    _conduct_run(trying, side, _orders(trying, side, load, trying.folder / run.run, "load-test"))
    trying.update(runs=(*before, _folder.judged(run, trying.folder)))


def _conduct_run(trying: Trying, side: Side, orders: Orders) -> None:
    """Its phases are not told: there are dozens. A Ctrl-C ends a run in order, and is meant for all."""
    with _of_side(side):
        folder = session.conduct(orders, Watch(quiet=True))
    if store.open_run(folder).state == "interrupted":
        raise KeyboardInterrupt


@contextlib.contextmanager
def _of_side(side: Side) -> Iterator[None]:
    """An error inside is told as that of the side, once it is known whether that is gone."""
    try:
        yield
    except TargetError as error:
        time.sleep(0.2)  # a process that closed its sockets may take this long to end
        raise died(side, error) from error


def _scenario(trying: Trying, side: Side, load: Load) -> Scenario:
    base = trying.plan.scenario
    return msgspec.structs.replace(base, target=side.target(base.target), load=load)


def _orders(trying: Trying, side: Side, load: Load, out: Path, command: str) -> Orders:
    return Orders(
        scenario=_scenario(trying, side, load),
        command=command,
        argv=trying.plan.argv,
        out=out,
        secret=trying.plan.secret,
        probes=command == "diagnose",
        patient=side.patient,
    )
