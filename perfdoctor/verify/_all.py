"""Tries every fix of the catalogue that is a setting of the local model, into one table."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from perfdoctor import __version__, disk, folders, interrupts, units
from perfdoctor.diagnosis import catalogue
from perfdoctor.diagnosis.catalogue import Fix
from perfdoctor.errors import PerfdoctorError, UsageError
from perfdoctor.model import SideName, Trial, Trials, TriedSide, Verification
from perfdoctor.progress import Watch
from perfdoctor.verify import _folder
from perfdoctor.verify._conduct import local_sides, try_fix
from perfdoctor.verify._plan import Plan
from perfdoctor.verify._side import Bench, Child, Log, of_process
from perfdoctor.verify._trying import Known

MakePlan = Callable[[Fix], Plan]  # raises CannotTry


@dataclass(slots=True)
class _Shared:
    """What fixes have in common: processes by their settings, and what is known of a side at a load."""

    children: dict[str, Child] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)

    def known_of(self, side: TriedSide, plan: Plan) -> Known:
        key = repr((sorted(side.settings.items()), plan.load, plan.of_loading))
        return self.known.setdefault(key, Known())

    def stop(self) -> None:
        for child in self.children.values():
            child.stop()


def conduct_all(
    make: MakePlan, model: str, argv: tuple[str, ...], out: Path | None, watch: Watch
) -> tuple[Path, Trials]:
    """Into `out`. A fix whose folder there is complete is not tried again: it goes on where it ended."""
    folder, found = _opened(model, argv, out)
    shared, state = _Shared(), "interrupted"
    try:
        with disk.claim(folder), contextlib.suppress(KeyboardInterrupt):
            _folder.write(folder, found)
            for fix in sorted(catalogue.load_fixes(), key=lambda fix: fix.id):
                trial = _done(fix, folder) or _trial(fix, make, folder, watch, shared)
                hardware = trial.result.hardware if trial.result else found.hardware
                found = msgspec.structs.replace(found, trials=(*found.trials, trial), hardware=hardware)
                _folder.write(folder, found)
            state = "complete"
    finally:
        with interrupts.shield():
            shared.stop()
            found = msgspec.structs.replace(found, state=state)
            _folder.write(folder, found)
    return folder, found


def _opened(model: str, argv: tuple[str, ...], out: Path | None) -> tuple[Path, Trials]:
    if out is not None and _folder.is_trials(out):
        found = _folder.read_trials(out)
        if found.model != model:
            raise UsageError(
                f"{out} holds the trials of {found.model}, not of {model}", "", "give another --out"
            )
        return out, msgspec.structs.replace(found, state="running", trials=())
    folder = folders.given(out) if out else folders.fresh("verify-all")
    return folder, Trials(verify=folder.name, perfdoctor=__version__, argv=argv, model=model)


def _line(fix: Fix) -> Trial:
    return Trial(fix=fix.id, title=fix.title, catalogue=fix.verdict, claim=fix.claim, promised=fix.promised)


def _tried(fix: Fix, result: Verification) -> Trial:
    return msgspec.structs.replace(
        _line(fix), verdict=result.verdict, reason=result.reason, folder=result.verify, result=result
    )


def _done(fix: Fix, folder: Path) -> Trial | None:
    """The line of a fix that was tried before."""
    for path in sorted(folder.glob(f"{fix.id}*/{folders.VERIFY}")):
        result = _folder.read(path.parent)
        if result.fix == fix.id and result.state == "complete":
            return _tried(fix, result)
    return None


def _trial(fix: Fix, make: MakePlan, folder: Path, watch: Watch, shared: _Shared) -> Trial:
    """A fix that cannot run here is a line with its reason."""
    try:
        result = _try(make(fix), _next_free(folder, fix.id), watch, shared)
    except PerfdoctorError as error:
        watch.note(f"{fix.id}: {error.what}")
        reason = f"{error.what} ({error.why.rstrip('.')})" if error.why else error.what
        return msgspec.structs.replace(_line(fix), verdict="cannot_run", reason=reason)
    if result.state == "interrupted":
        raise KeyboardInterrupt
    watch.note(f"{fix.id}: {result.verdict.replace('_', ' ')} {units.number(result.ratio)}x")
    return _tried(fix, result)


def _next_free(folder: Path, name: str) -> Path:
    """A fix that was interrupted is tried again beside what there is of it."""
    number, path = 1, folder / name
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}"
    return path


def _try(plan: Plan, folder: Path, watch: Watch, shared: _Shared) -> Verification:
    """The process without a fix stays up for the next one; what is known of a side is known for each load."""
    folder.mkdir(parents=True)
    if plan.of_loading:  # nobody else may hold the files
        shared.stop()
    children = {} if plan.of_loading else dict(shared.children)
    sides = local_sides(plan, [Log(folder.parent / "server.log") for _ in range(2)], children)
    plain = of_process(plan.scenario.target.options)
    if not plan.of_loading:
        shared.children |= {key: child for key, child in children.items() if child.settings == plain}
    known: dict[SideName, Known] = {"before": shared.known_of(plan.before, plan)}
    try:
        return try_fix(plan, watch, folder, Bench(sides), known)
    finally:
        with interrupts.shield():
            for child in children.values():
                if child not in shared.children.values():
                    child.stop()
