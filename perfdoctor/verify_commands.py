"""The bodies of `verify`, and of `report` on its folders."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perfdoctor import console, folders, verify
from perfdoctor.errors import CannotJudge
from perfdoctor.model import Trials, Verification
from perfdoctor.progress import Watch

if TYPE_CHECKING:
    from perfdoctor.verify import Plan
    from perfdoctor.verify._all import MakePlan

INTERRUPTED = 130


def run(plan: Plan, quiet: bool) -> Verification:
    with Watch(quiet) as watch:
        folder, found = verify.conduct(plan, watch)
    watch.note(f"Folder: {folder}")
    return found


def run_all(make: MakePlan, model: str, argv: tuple[str, ...], out: Path | None, quiet: bool) -> Trials:
    with Watch(quiet) as watch:
        folder, found = verify.conduct_all(make, model, argv, out, watch)
    watch.note(f"Folder: {folder}")
    if found.state == "interrupted":
        watch.note(f"Go on with: perfdoctor verify --all --model {model} -o {folder}")
    return found


def folder_of(path: str) -> Path | None:
    """The verification that a path, a name or `latest` means; None where that is something else."""
    kinds = (folders.RUN, folders.SWEEP, folders.VERIFY, folders.TRIALS)
    found = folders.latest(*kinds) if path == "latest" else folders.named(path)
    return found if verify.is_verify(found) or verify.is_trials(found) else None


def again(folder: Path) -> Verification | Trials:
    return verify.read(folder) if verify.is_verify(folder) else verify.read_trials(folder)


def show(found: Verification | Trials, *, as_json: bool) -> None:
    from perfdoctor.reports import _verification, json

    with console.writing():
        if as_json:
            sys.stdout.buffer.write(json.encode(found).encode("utf-8", "replace"))
        elif isinstance(found, Verification):
            _verification.print_verification(console.out(), found)
        else:
            _verification.print_trials(console.out(), found)


def exit_code(found: Verification | Trials) -> int:
    """0 whatever the verdict is; 4 where there is none."""
    if found.state == "interrupted":
        return INTERRUPTED
    if isinstance(found, Verification) and found.verdict == "not_judged":
        return CannotJudge.exit_code
    return 0
