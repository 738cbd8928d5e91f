"""The only place that turns numbers into text and text into numbers: durations, sizes, shares, rates."""

from __future__ import annotations

import re

MISSING = "-"

_DURATION = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZE = {
    "B": 1,
    "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip


def parse_duration(text: str) -> float:
    """`30s`, `250ms`, `2m`, or a bare number of seconds. ValueError says what is accepted."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-zµ]*)\s*", text)
    unit = match.group(2).replace("µ", "u") if match else ""
    if not match or (unit and unit not in _DURATION):
        raise ValueError(f"'{text}' is no duration; write for example 30s, 250ms or 2m")
    return float(match.group(1)) * _DURATION[unit or "s"]


def parse_size(text: str) -> int:
    """`2GiB`, `500MB` or a bare number of bytes."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([A-Za-z]*)\s*", text)
    if not match or (match.group(2) and match.group(2) not in _SIZE):
        raise ValueError(f"'{text}' is no size; write for example 2GiB, 500MB or 4096")
    return int(float(match.group(1)) * _SIZE[match.group(2) or "B"])


def seconds(value: float | None) -> str:
    """Three significant digits in the unit that fits; `-` when missing."""
    if value is None:
        return MISSING
    size = abs(value)
    if size >= 100:
        return f"{value:.0f} s"
    if size >= 1:
        return f"{value:.3g} s"
    if size >= 1e-3 or value == 0:
        return f"{value * 1e3:.3g} ms"
    return f"{value * 1e6:.3g} µs"


def share(value: float | None) -> str:
    """A 0-1 share as percent."""
    if value is None:
        return MISSING
    percent = value * 100
    return f"{percent:.2g} %" if 0 < abs(percent) < 1 else f"{percent:.0f} %"


def number(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def size_bytes(value: float | None) -> str:
    """Decimal units, as storage and bandwidth figures use."""
    if value is None:
        return MISSING
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def quantity(value: float | None, unit: str) -> str:
    """A number with its unit, in the style the unit asks for."""
    if value is None:
        return MISSING
    if unit == "s":
        return seconds(value)
    if unit == "share":
        return share(value)
    if unit == "bytes":
        return size_bytes(value)
    if unit == "bytes/s":
        return size_bytes(value) + "/s"
    return f"{number(value)} {unit}".strip()


def interval(low: float, high: float, unit: str) -> str:
    """`20-24 ms`: the unit once where both ends share it, one number where they read the same."""
    first, last = quantity(low, unit), quantity(high, unit)
    if first == last:
        return first
    value, _, name = first.rpartition(" ")
    return f"{value}-{last}" if name and last.endswith(" " + name) else f"{first} to {last}"
