"""Numbers as tools print them: `12.50`, `12,50`, `1.5k`, `3.2ms`, `N/A`. Missing is None, never 0."""

from __future__ import annotations

import math
import re

_PLAIN = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d{1,3})?")
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_WITH_UNIT = re.compile(r"([+-]?[\d.,]+)\s*([a-zA-Zµμ%]*)")
BINARY = {letter: 1024.0**power for power, letter in enumerate("kmgtpe", 1)}
DECIMAL = {letter: 1000.0**power for power, letter in enumerate("kmgtpe", 1)}
SECONDS = {
    "ns": 1e-9, "nsec": 1e-9, "us": 1e-6, "usec": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "msec": 1e-3,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0,
}  # fmt: skip


def number(text: str) -> float | None:
    """A plain number with a point or a comma before its decimals; None for anything else, `-nan` included."""
    text = text.strip()
    if not _PLAIN.fullmatch(text):
        return None
    value = float(text.replace(",", "."))
    return value if math.isfinite(value) else None


def grouped(text: str) -> float | None:
    """A number whose thousands may be parted by commas, as English tables print them: `1,234.5`."""
    text = text.strip()
    return number(text.replace(",", "") if _GROUPED.fullmatch(text) else text)


def share(text: str) -> float | None:
    """A percentage, with or without its sign, as a share."""
    value = number(text.strip().removesuffix("%"))
    return None if value is None else value / 100


def seconds(text: str) -> float | None:
    """`1.5ms`, `2 s`, `0.4 secs`; None without a unit of time."""
    value, unit = _parts(text)
    factor = SECONDS.get(unit.lower() if unit != "M" else unit)
    return None if value is None or factor is None else value * factor


def size_bytes(text: str, bare: float = 1.0) -> float | None:
    """`15Gi`, `356 MiB`, `373MB`, `1.2k`; `bare` is the unit of a number that has none.

    `Gi` and `GiB` are powers of 1024, `GB` of 1000, a lone letter of 1024 as in `free -h` and `top`.
    """
    value, unit = _parts(text)
    if value is None:
        return None
    if not unit:
        return value * bare
    letter, rest = unit[0].lower(), unit[1:].lower()
    if unit in ("B", "b", "Byte", "Bytes", "bytes"):
        return value
    powers = DECIMAL if rest == "b" else BINARY
    return value * powers[letter] if letter in powers and rest in ("", "i", "ib", "b") else None


def _parts(text: str) -> tuple[float | None, str]:
    match = _WITH_UNIT.fullmatch(text.strip())
    return (number(match[1]), match[2]) if match else (None, "")
