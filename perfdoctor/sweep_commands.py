"""The bodies of `sweep`, and of `report` on a sweep."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perfdoctor import console, folders, sweep
from perfdoctor.commands import CROSSED
from perfdoctor.errors import CannotJudge
from perfdoctor.model import Sweep
from perfdoctor.progress import Watch

if TYPE_CHECKING:
    from perfdoctor.stages import Orders

INTERRUPTED = 130


def run(orders: Orders, plan: sweep.Plan, *, warms_up: bool, quiet: bool) -> Sweep:
    """Make a sweep."""
    with Watch(quiet) as watch:
        folder, found = sweep.conduct(orders, plan, warms_up, watch)
    watch.note(f"Sweep folder: {folder}")
    return found


def folder_of(path: str) -> Path | None:
    """The sweep that a path, a name or `latest` means; None where that is something else."""
    found = folders.latest(folders.RUN, folders.SWEEP) if path == "latest" else folders.named(path)
    return found if sweep.is_sweep(found) else None


def again(folder: Path, slo: str | None = None) -> Sweep:
    return sweep.read(folder, slo)


def show(found: Sweep, *, as_json: bool) -> None:
    from perfdoctor.reports import _sweep, json

    with console.writing():
        if as_json:
            sys.stdout.buffer.write(json.encode(found).encode("utf-8", "replace"))
        else:
            _sweep.print_sweep(console.out(), found)


def exit_code(found: Sweep) -> int:
    """As of a load test: what could not be measured before what cannot be trusted, before the SLO."""
    if found.state == "interrupted":
        return INTERRUPTED
    errors = [row.exit_code for row in found.levels if row.error is not None]
    if errors:
        return errors[-1] or 1
    return judged_code(found)


def judged_code(found: Sweep) -> int:
    """4 where an untrusted level may be the answer, 1 where no load is within the SLO; says which."""
    doubtful = sweep.levels_in_doubt(found)
    if doubtful:
        names = ", ".join(f"{level:g}" for level in doubtful)
        console.say(f"Exit 4: the answer may be a level whose run cannot be trusted: {names}")
        return CannotJudge.exit_code
    if found.slo is None or found.slo.status in ("found", "not_reached"):
        return 0
    console.say(f"Exit 1: no load was found within {found.slo_text}: {found.slo.reason}")
    return CROSSED
