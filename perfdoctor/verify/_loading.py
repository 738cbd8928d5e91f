"""Fixes of how a model is loaded: each run is a start with files that memory does not hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from perfdoctor.diagnosis.catalogue import Fix
from perfdoctor.errors import CannotTry
from perfdoctor.local import models
from perfdoctor.model import Sample
from perfdoctor.probes import _residency

ROWS = frozenset({"storage_wait", "deserialise", "host_to_device", "first_forward"})
LEFT = 0.01  # share of the files that may stay in memory: somebody else may have them mapped
_NOT_LOADING = ("import", "prepare", "total")  # the same whatever is loaded, and their sum


def is_of_loading(fix: Fix | None) -> bool:
    return bool(fix and fix.removes and ROWS.issuperset(fix.removes))


def files_of(model: str) -> tuple[Path, ...]:
    """Made if it is a tiny model that is not there yet. CannotTry where nothing is read."""
    source = models.resolve(model)
    models.prepare(source)
    if not source.weight_files():
        raise CannotTry(
            f"{model} is not loaded from any file",
            "Its weights are random, made where they are used.",
            "give a model folder: --model FOLDER",
        )
    return source.weight_files()


def evict(files: Sequence[Path]) -> str:
    """Asks the kernel to forget the files' pages; why they are still there, or nothing."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # pages that are not on the disk yet cannot be let go
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    share = _residency.resident_share(files)
    if share is None or share <= LEFT:
        return ""
    return f"{share:.0%} of the weights stay in memory whatever is asked: they are not read from the disk"


def load_s(told: Sequence[Sample]) -> float | None:
    """What loading took, by the child's own stamps, without its imports."""
    found = [
        s.values.get("seconds") or 0.0
        for s in told
        if s.probe == "load" and s.labels.get("phase") not in _NOT_LOADING
    ]
    return sum(found) if found else None
