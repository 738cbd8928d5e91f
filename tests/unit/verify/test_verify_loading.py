"""Fixes of loading: a run is a start with files that memory does not hold."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from perfdoctor.errors import CannotTry
from perfdoctor.model import TriedRun, Verification
from perfdoctor.probes import _residency
from perfdoctor.verify import _folder, _loading, _plan
from tests import factories


def test_which_fixes_are_of_loading():
    """Those that take away nothing but time of loading."""
    assert _loading.is_of_loading(_plan.find_fix("read-weights-sequentially-first"))
    assert not _loading.is_of_loading(_plan.find_fix("load-in-bfloat16"))
    assert not _loading.is_of_loading(None)


def test_the_time_of_loading_is_without_the_imports():
    """Nor with the sum of all phases."""
    told = factories.load_samples(import_=3.0, weights=0.4, to_device=0.1)

    assert 0.5 == pytest.approx(_loading.load_s(told))
    assert _loading.load_s([]) is None


def test_evicted_files_are_not_in_memory(tmp_path: Path):
    """By the kernel's own account, where the file system lets pages go."""
    file = tmp_path / "weights"
    file.write_bytes(b"x" * (1 << 22))
    assert 1.0 == _residency.resident_share([file])

    why = _loading.evict([file])

    share = _residency.resident_share([file])
    assert share is not None
    assert (share <= _loading.LEFT) == (why == "")


def test_random_weights_are_loaded_from_nowhere():
    """Said before anything is started."""
    with pytest.raises(CannotTry, match="is not loaded from any file"):
        _loading.files_of("shape:deepseek-r1-distill-qwen-1.5b")


def test_starts_are_judged_like_runs(tmp_path: Path):
    """Half the time of loading in each pair; they have no run folders."""
    values = [("before", 1.0), ("before", 1.0), ("after", 0.5), ("after", 0.51), ("before", 1.01)]
    values += [("before", 1.0), ("after", 0.5)]
    runs = tuple(
        TriedRun(side=side, pair=(i + 1) // 2, value=value)  # type: ignore[arg-type]
        for i, (side, value) in enumerate(values)
    )
    found = Verification(metric="load_s", runs=runs, fix="read-weights-sequentially-first")

    settled = _folder.settled(found, tmp_path)

    assert "helps" == settled.verdict
    assert settled.ratio == pytest.approx(2.0, rel=0.02)
    assert settled.compared is not None
    (row,) = settled.compared.metrics
    assert ("load_s", "better") == (row.metric, row.verdict)
    assert settled == _folder.settled(msgspec.structs.replace(settled), tmp_path)
