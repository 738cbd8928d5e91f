"""The folder of a sweep, and its result as a function of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from perfdoctor import disk
from perfdoctor.errors import RunFolderError
from perfdoctor.folders import SWEEP
from perfdoctor.model import Sweep, SweepLevel
from perfdoctor.sweep import _rows
from perfdoctor.sweep._knee import find_knee
from perfdoctor.sweep._within import find_within


def is_sweep(folder: Path) -> bool:
    return (folder / SWEEP).is_file()


def write(folder: Path, found: Sweep) -> None:
    text = msgspec.json.format(msgspec.json.encode(found), indent=1)
    disk.write_atomically(folder / SWEEP, text)


def read(folder: Path, slo: str | None = None) -> Sweep:
    """A sweep again, its numbers from its run folders; a level whose folder is gone as it was written."""
    try:
        found = msgspec.json.decode((folder / SWEEP).read_bytes(), type=Sweep)
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
        raise RunFolderError(
            f"{folder / SWEEP} cannot be read: {error}",
            "It was changed or cut off, or belongs to another user.",
            f"show one of its runs instead; list them with: ls {folder}",
        ) from error
    killed = found.state == "running" and not disk.is_claimed(folder)
    changes = {"state": "interrupted", "ended": "interrupted"} if killed else {}
    return settled(msgspec.structs.replace(found, slo_text=slo or found.slo_text, **changes), folder)


def settled(found: Sweep, folder: Path) -> Sweep:
    """With the numbers of every run that is there. A level that was begun and has none is left out."""
    again = (_again(row, folder, found.slo_text) for row in found.levels)
    rows = [row for row in again if row is not None]
    best = {row.level: row for row in sorted(rows, key=_worth)}  # of equals the last
    marked = tuple(msgspec.structs.replace(row, repeated=row is not best[row.level]) for row in rows)
    return concluded(msgspec.structs.replace(found, levels=marked))


def _worth(row: SweepLevel) -> tuple[bool, bool, bool]:
    """Which run of a level stands for it: an error is never hidden, and one that was cut short no gain."""
    return row.error is not None, row.state == "complete", row.requests > 0


def concluded(found: Sweep) -> Sweep:
    """With what the levels say together."""
    within = find_within(found.over, found.levels) if found.slo_text else None
    return msgspec.structs.replace(found, knee=find_knee(found.over, found.levels), slo=within)


def _again(row: SweepLevel, folder: Path, slo: str | None) -> SweepLevel | None:
    if (folder / row.run / "run.json").exists():
        return _rows.measured(row, folder, slo)
    return None if row.state == "running" else row
