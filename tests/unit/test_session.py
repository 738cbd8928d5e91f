"""The parts of conducting a run that decide something."""

from __future__ import annotations

from perfdoctor import session


def test_the_highest_reading_of_a_ceiling_counts():
    """Each ceiling on its own; what only one calibration holds is kept, and unknown stays unknown."""
    before = {"copy_bytes_per_s": 3e9, "read_bytes_per_s": 2e9, "gpu_copy_bytes_per_s": 4e12}
    after = {"copy_bytes_per_s": 4e9, "read_bytes_per_s": 1e9, "lost": None}

    assert {
        "copy_bytes_per_s": 4e9,
        "read_bytes_per_s": 2e9,
        "gpu_copy_bytes_per_s": 4e12,
        "lost": None,
    } == session._best(before, after)


def test_a_failed_calibration_does_not_hide_a_good_one():
    """None against a number is the number, in either order."""
    assert {"read_bytes_per_s": 2e9} == session._best({"read_bytes_per_s": None}, {"read_bytes_per_s": 2e9})
    assert {"read_bytes_per_s": 2e9} == session._best({"read_bytes_per_s": 2e9}, {"read_bytes_per_s": None})
