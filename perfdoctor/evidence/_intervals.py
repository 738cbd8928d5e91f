"""Rates of successive intervals as the cumulative counters that probes keep, on the file's own clock."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise

from perfdoctor.model import Sample

ASSUMED_S = 1.0  # rates do not depend on it
DAY_S = 86400.0
_TIME = re.compile(r"(\d{1,2}):(\d\d):(\d\d)(?:[.,]\d+)?(?:\s*([AaPp][Mm]))?")
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_SLASHED = re.compile(r"\b(\d\d?)/(\d\d?)/(\d{4}|\d\d)\b")
_DOTTED = re.compile(r"\b(\d\d?)\.(\d\d?)\.(\d{4})\b")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Seconds of the day, and the date where the text tells it beyond doubt."""

    of_day_s: float
    date: tuple[int, int, int] | None = None

    def wall(self) -> str | None:
        if self.date is None:
            return None
        whole = int(self.of_day_s)
        try:
            stamp = datetime(*self.date, whole // 3600, whole // 60 % 60, whole % 60)
        except ValueError:
            return None
        return stamp.isoformat()


def stamp_of(text: str, date: tuple[int, int, int] | None = None) -> Stamp | None:
    """The first time of day in a text; `date` is used where the text has none of its own."""
    match = _TIME.search(text)
    if not match:
        return None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3])
    if match[4]:
        hour = hour % 12 + (12 if match[4].lower() == "pm" else 0)
    if hour > 23 or minute > 59 or second > 60:
        return None
    return Stamp(hour * 3600.0 + minute * 60.0 + second, date_of(text) or date)


def date_of(text: str) -> tuple[int, int, int] | None:
    """Year, month, day. None where month and day could be taken for each other: a wrong date joins files that
    do not belong together."""
    if match := _ISO.search(text):
        return int(match[1]), int(match[2]), int(match[3])
    if match := _DOTTED.search(text):
        return int(match[3]), int(match[2]), int(match[1])
    if not (match := _SLASHED.search(text)):
        return None
    first, second, year = int(match[1]), int(match[2]), int(match[3])
    if len(match[3]) == 2:  # the C locale's month/day/year
        return 2000 + year, first, second
    if second > 12 or re.search(r"\b[AP]M\b", text):
        return year, first, second
    return (year, second, first) if first > 12 else None


@dataclass(frozen=True, slots=True)
class Clock:
    """Ends of successive intervals on the file's clock, whose zero is the start of the first."""

    ends_s: tuple[float, ...]
    length_s: float  # of the first interval
    kind: str
    wall_zero: str | None = None
    ordered: bool = True

    @property
    def instants_s(self) -> tuple[float, ...]:
        """The start of the first interval, then the end of each."""
        return (0.0, *self.ends_s)


def clock_of(stamps: Sequence[Stamp | None], told_s: float | None = None) -> Clock:
    """From the stamps at the ends of intervals; without them, intervals of the told or an assumed length."""
    known = [s for s in stamps if s is not None]
    passed = _passed(known) if known and len(known) == len(stamps) else None
    if passed is None:
        length_s = told_s or ASSUMED_S
        ends = tuple(length_s * (i + 1) for i in range(len(stamps)))
        return Clock(ends, length_s, "interval", ordered=len(known) < len(stamps) or not known)
    steps = [b - a for a, b in pairwise(passed)]
    length_s = told_s or (statistics.median(steps) if steps else ASSUMED_S)
    first = Stamp((known[0].of_day_s - length_s) % DAY_S, known[0].date)
    wall = None if known[0].of_day_s < length_s else first.wall()
    return Clock(tuple(length_s + s for s in passed), length_s, "stamps", wall)


def _passed(stamps: Sequence[Stamp]) -> list[float] | None:
    """Seconds since the first stamp, over midnight; None where the order is broken or time stands still."""
    found = [0.0]
    for before, now in pairwise(stamps):
        step = (now.of_day_s - before.of_day_s) % DAY_S
        if step == 0 or step > DAY_S / 2:
            return None
        found.append(found[-1] + step)
    return found


def totals(gains: Sequence[float | None]) -> list[float | None]:
    """The counter before the first and after each gain, over the longest stretch without an unknown one.

    What lies on both sides of an unknown gain cannot be compared.
    """
    runs = [[i for i, _ in run] for whole, run in groupby(enumerate(gains), _is_known) if whole]
    kept = max(runs, key=len, default=[])
    found: list[float | None] = [None] * (len(gains) + 1)
    if kept:
        value = found[kept[0]] = 0.0
        for i in kept:
            value += gains[i] or 0.0
            found[i + 1] = value
    return found


def _is_known(item: tuple[int, float | None]) -> bool:
    return item[1] is not None


def counters(
    probe: str, labels: Mapping[str, str], clock: Clock, rows: Iterable[Mapping[str, float | None] | None]
) -> list[Sample]:
    """Samples of one thing from its rates per second, a row an interval; a row of None was unreadable."""
    listed = list(rows)
    names = sorted({name for row in listed if row for name in row})
    spans = [b - a for a, b in pairwise(clock.instants_s)]
    columns: dict[str, list[float | None]] = {}
    for name in names:
        rates = [row.get(name) if row else None for row in listed]
        columns[name] = totals([None if r is None else r * s for r, s in zip(rates, spans, strict=True)])
    return [
        Sample(at_s=at_s, probe=probe, labels=dict(labels), values={n: columns[n][i] for n in names})
        for i, at_s in enumerate(clock.instants_s)
    ]
