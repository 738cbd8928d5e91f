"""What stands for a level that was run more than once, from sweep.json alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import sweep_cases as cases

from perfdoctor.model import Sweep, SweepLevel
from perfdoctor.sweep._folder import settled


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ({}, {}, 2),  # the longer one
        ({}, {"state": "interrupted", "requests": 3}, 1),
        ({}, {"state": "failed", "error": "it died"}, 2),
        ({"state": "interrupted", "requests": 3}, {"state": "interrupted", "requests": 0}, 1),
    ],
)
def test_which_run_stands_for_its_level(tmp_path: Path, first: dict, second: dict, shown: int):
    """One that was cut short does not hide what was measured before; an error is never hidden."""
    rows: tuple[SweepLevel, ...] = (
        cases.row(4, **{"run": "1", "repeated": True} | first),
        cases.row(4, **{"run": "2", "why": "repeated"} | second),
    )

    found = settled(Sweep(levels=rows), tmp_path)

    assert [str(shown)] == [row.run for row in found.levels if not row.repeated]
