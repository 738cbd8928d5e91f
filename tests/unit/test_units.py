"""Numbers to text and back."""

from __future__ import annotations

import pytest

from perfdoctor import units


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30s", 30), ("250ms", 0.25), ("2m", 120), ("1.5h", 5400), ("7", 7), ("10µs", 1e-5)],
)
def test_durations_take_units(text: str, expected: float):
    """A bare number means seconds."""
    assert pytest.approx(expected) == units.parse_duration(text)


@pytest.mark.parametrize("text", ["", "fast", "10 parsecs", "-3s", "1,5s"])
def test_other_durations_are_refused_with_an_example(text: str):
    """The message shows what would have been accepted."""
    with pytest.raises(ValueError, match="30s"):
        units.parse_duration(text)


@pytest.mark.parametrize(("text", "expected"), [("2GiB", 2 << 30), ("500MB", 500_000_000), ("4096", 4096)])
def test_sizes_take_units(text: str, expected: int):
    """Binary and decimal prefixes differ."""
    assert expected == units.parse_size(text)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.0226, "s", "22.6 ms"),
        (3.2e-6, "s", "3.2 µs"),
        (12.34, "s", "12.3 s"),
        (0.0, "s", "0 ms"),
        (0.84, "share", "84 %"),
        (0.0042, "share", "0.42 %"),
        (4.8e12, "bytes/s", "4.8 TB/s"),
        (28672, "bytes", "28.7 kB"),
        (1187, "launches", "1,187 launches"),
        (None, "s", "-"),
    ],
)
def test_quantities_carry_their_unit(value: float | None, unit: str, expected: str):
    """Missing is a dash in every unit."""
    assert expected == units.quantity(value, unit)
