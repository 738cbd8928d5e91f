"""Where run folders lie and what they are called."""

from __future__ import annotations

import contextlib
import os
import re
from datetime import datetime, timezone
from pathlib import Path

from perfdoctor.disk import disk_errors
from perfdoctor.errors import RunFolderError

RUNS_ENV = "PERFDOCTOR_RUNS"
# What a folder holds is known by its file.
RUN, SWEEP, VERIFY, TRIALS = "run.json", "sweep.json", "verify.json", "trials.json"


def runs_root() -> Path:
    """Where run folders live: $PERFDOCTOR_RUNS, else `perfdoctor-runs` in the current folder."""
    return Path(os.environ.get(RUNS_ENV) or "perfdoctor-runs")


def given(path: Path) -> Path:
    do = "give another --out"
    with disk_errors(path):
        if path.exists() and not path.is_dir():
            raise RunFolderError(f"{path} is a file", "A run is a folder of several files.", do)
        if any((path / kind).exists() for kind in (RUN, SWEEP, VERIFY, TRIALS)):
            raise RunFolderError(f"{path} already holds a run", "Runs are never overwritten.", do)
        path.mkdir(parents=True, exist_ok=True)
    return path


def fresh(command: str) -> Path:
    """Made here, not only named: two runs of the same second must not share one."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{stamp}-{command}").strip("-")
    root, suffix = runs_root(), 1
    path = root / name
    with disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                path.mkdir()
            except FileExistsError:
                suffix += 1
                path = root / f"{name}-{suffix}"
            else:
                return path


def latest(*kinds: str) -> Path:
    """The folder that changed last, of a run unless other kinds are named."""
    files = [file for kind in kinds or (RUN,) for file in runs_root().glob(f"*/{kind}")]
    found = max(files, key=_changed_s, default=None)
    if found is None:
        raise RunFolderError(
            f"no run found under {runs_root()}",
            "Runs are kept in the folder where perfdoctor was started.",
            f"name a run folder, set {RUNS_ENV}, or make a run: perfdoctor diagnose --model tiny",
        )
    return found.parent


def _changed_s(path: Path) -> float:
    """0 for a file that was removed just now."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def named(path: str) -> Path:
    """A folder by its path, or by its name under the runs root."""
    for candidate in (Path(path), runs_root() / path):
        with contextlib.suppress(OSError):  # a name too long for any file
            if candidate.is_dir():
                return candidate
    raise RunFolderError(f"there is no run folder {path}", "", f"list them with: ls {runs_root()}")
