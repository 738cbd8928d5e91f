"""Tries one fix: starts both sides, asks both the same, diagnoses each, then drives them in turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from perfdoctor import __version__, disk, folders, interrupts, preflight, units
from perfdoctor.errors import PerfdoctorError
from perfdoctor.model import SideName, Verification
from perfdoctor.probes import _host
from perfdoctor.progress import Watch
from perfdoctor.verify import _folder, _known, _runs
from perfdoctor.verify._command import CommandSide, check_free
from perfdoctor.verify._plan import Plan, about_s, described
from perfdoctor.verify._side import Bench, Child, EndpointSide, LocalSide, Log, Side, of_process
from perfdoctor.verify._trying import SIDES, Known, Trying, side_up


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
    return local_sides(plan, logs, {})


def local_sides(plan: Plan, logs: Sequence[Log], children: dict[str, Child]) -> tuple[LocalSide, LocalSide]:
    """On the children that are there already, or new ones. One serves both sides, unless they differ in more
    than switches, or each run is to load the model anew."""
    found = []
    for name, settings, log in zip(SIDES, (plan.before.settings, plan.after.settings), logs, strict=True):
        own = of_process(settings)
        key = repr((name if plan.of_loading else "", sorted(own.items())))
        child = children.setdefault(key, Child(plan.scenario.target.model or "", own, log))
        found.append(LocalSide(name, settings, child))
    return found[0], found[1]


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
    plan = trying.plan
    trying.watch.note(
        f"Trying {plan.name}: {2 * plan.pairs + 1} runs in turn, {described(plan.load)}; "
        f"a minute, and {units.seconds(about_s(plan))} or more for the runs"
    )
    for name in SIDES:  # what does not start is said before anything is measured
        side_up(trying, name)
    for name in SIDES:
        _known.know(trying, name)
    trying.update(outputs=_known.outputs(trying))
    (_runs.load_again if plan.of_loading else _runs.drive)(trying)
