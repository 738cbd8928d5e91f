"""Tries every fix of the catalogue that is a setting of the local model, into one table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from perfdoctor import __version__, disk, folders, interrupts
from perfdoctor.diagnosis import catalogue
from perfdoctor.diagnosis.catalogue import Fix
from perfdoctor.errors import PerfdoctorError, UsageError
from perfdoctor.model import Trial, Trials, Verification
from perfdoctor.progress import Watch
from perfdoctor.verify import _folder
from perfdoctor.verify._conduct import Known, sides_of, try_fix
from perfdoctor.verify._plan import Plan
from perfdoctor.verify._side import Bench, LocalSide

MakePlan = Callable[[Fix], Plan]  # raises CannotTry


def conduct_all(
    make: MakePlan, model: str, argv: tuple[str, ...], out: Path | None, watch: Watch
) -> tuple[Path, Trials]:
    """Into `out`, going on where it ended if it holds such a table already."""
    folder, found = _opened(model, argv, out)
    state = "interrupted"
    kept: dict[str, tuple[LocalSide, Known]] = {}
    try:
        with disk.claim(folder):
            for fix in sorted(catalogue.load_fixes(), key=lambda fix: fix.id):
                if fix.id in {trial.fix for trial in found.trials if trial.verdict is not None}:
                    continue
                trial = _trial(fix, make, folder, watch, kept)
                found = _with(found, trial)
                _folder.write(folder, found)
            state = "complete"
    except KeyboardInterrupt:
        pass
    finally:
        with interrupts.shield():
            for side, _ in kept.values():
                side.stop()
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
        return out, msgspec.structs.replace(found, state="running")
    folder = folders.given(out) if out else folders.fresh("verify-all")
    return folder, Trials(verify=folder.name, perfdoctor=__version__, argv=argv, model=model)


def _with(found: Trials, trial: Trial) -> Trials:
    others = tuple(old for old in found.trials if old.fix != trial.fix)
    hardware = trial.result.hardware if trial.result else found.hardware
    return msgspec.structs.replace(found, trials=(*others, trial), hardware=hardware)


def _trial(
    fix: Fix, make: MakePlan, folder: Path, watch: Watch, kept: dict[str, tuple[LocalSide, Known]]
) -> Trial:
    """A fix that cannot run here is a line with its reason."""
    trial = Trial(fix=fix.id, title=fix.title, catalogue=fix.verdict, claim=fix.claim, promised=fix.promised)
    try:
        plan = make(fix)
        result = _tried(plan, _next_free(folder, fix.id), watch, kept)
    except PerfdoctorError as error:
        watch.note(f"{fix.id}: {error.what}")
        reason = f"{error.what}: {error.why}" if error.why else error.what
        return msgspec.structs.replace(trial, verdict="cannot_run", reason=reason)
    if result.state == "interrupted":
        raise KeyboardInterrupt
    return msgspec.structs.replace(
        trial, verdict=result.verdict, reason=result.reason, folder=result.verify, result=result
    )


def _next_free(folder: Path, name: str) -> Path:
    """A fix that was interrupted is tried again beside what there is of it."""
    number = 1
    path = folder / name
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}"
    return path


def _tried(plan: Plan, folder: Path, watch: Watch, kept: dict[str, tuple[LocalSide, Known]]) -> Verification:
    """The before side without any setting serves all fixes that have it; its answers and diagnosis too."""
    folder.mkdir(parents=True)
    key = repr(sorted(plan.before.settings.items()))
    before, after = sides_of(plan, folder)
    assert isinstance(before, LocalSide)
    shared = not plan.fix or not plan.fix.before
    if shared:
        before, known = kept.setdefault(key, (before, Known()))
    else:
        known = Known()
    bench = Bench((before, after))
    try:
        return try_fix(plan, watch, folder, bench, {"before": known})
    finally:
        with interrupts.shield():
            after.stop()
            if not shared:
                before.stop()
