"""vmstat: the host's run queue, swap, block traffic and CPU shares, an interval a line.

Reads procps `vmstat [-w] [-t] [-a] DELAY` of any version, with and without the columns st and gu. r counts
tasks that run or wait for a CPU: above the number of cores somebody waits. b counts tasks in
uninterruptible sleep. si is what came back from swap, in KiB/s; bi is read from all block devices together.
wa is time that was idle while IO was outstanding: a busy host hides it, so wa 0 is no proof against a slow
disk.

The first line covers the time since boot: only its r and b, which are of that instant, are used. Make it:
`vmstat -wt 1`, while the server is slow. `-d` and `-s` print totals since boot, which are no rates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdoctor.evidence._banner import interval_of
from perfdoctor.evidence._intervals import Stamp, clock_of, counters, stamp_of
from perfdoctor.evidence._metrics import DISK, HOST_CPU, HOST_TASKS
from perfdoctor.evidence._numbers import number
from perfdoctor.evidence._reader import Reader, Reading, Skipped
from perfdoctor.evidence._source import Line, Source
from perfdoctor.model import Sample

SHARES = ("us", "sy", "id", "wa", "st")  # gu, of guests, is inside us or beside it
ROUNDING = 4  # each of five shares is rounded to a whole percent
INSTANT = {"r": "host_runnable", "b": "host_blocked"}
CPU = {"id": "host_idle_share", "wa": "host_iowait_share", "st": "host_steal_share"}
_GROUPS = re.compile(r"^\s*-*procs\s*-+memory-+", re.IGNORECASE)
_COMMAND = re.compile(r"\bvmstat\b(.*)")
KIB = 1024.0

Row = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Found:
    line: int
    row: Row
    stamp: Stamp | None


def read(source: Source) -> Reading | None:
    """Samples `cpu`, `disk` (all devices together) and `memory` of each interval."""
    columns: tuple[str, ...] = ()
    claimed: set[int] = set()
    skipped: list[Skipped] = []
    found: list[_Found] = []
    for line in source.lines:
        words = line.text.split()
        if _GROUPS.match(line.text):
            claimed.add(line.number)
        elif words[:2] == ["r", "b"] and "swpd" in words:
            columns = tuple(w for w in words if w.islower())
            claimed.add(line.number)
        elif columns and len(words) > 5 and words[0].isdigit() and words[1].isdigit():
            claimed.add(line.number)
            try:
                found.append(_Found(line.number, _row(columns, words), _stamp(line, words, columns)))
            except ValueError as error:
                skipped.append(Skipped(line.number, str(error)))
    if not found and not skipped:
        return None
    return _reading(source.lines, found, claimed, skipped)


def _row(columns: Sequence[str], words: Sequence[str]) -> Row:
    """ValueError says why a line is none."""
    if len(words) < len(columns):
        raise ValueError(f"{len(words)} of {len(columns)} columns")
    values = {c: number(w) for c, w in zip(columns, words, strict=False)}
    row = {c: v for c, v in values.items() if v is not None and v >= 0}
    if len(row) < len(columns):
        raise ValueError("a column is no number")
    whole = sum(row.get(c, 0.0) for c in SHARES)
    if abs(whole - 100) > ROUNDING and abs(whole + row.get("gu", 0.0) - 100) > ROUNDING:
        raise ValueError(f"the CPU shares add up to {whole:.0f} %")
    return row


def _stamp(line: Line, words: Sequence[str], columns: Sequence[str]) -> Stamp | None:
    return stamp_of(" ".join(words[len(columns) :])) if len(words) > len(columns) else None


def _reading(
    lines: Sequence[Line], found: Sequence[_Found], claimed: set[int], skipped: list[Skipped]
) -> Reading:
    command = next((m[1] for line in lines if (m := _COMMAND.search(line.text))), "")
    boot = not re.search(r"\s-\w*y", command)
    kept = found[1:] if boot else found
    clock = clock_of([f.stamp for f in kept], interval_of(lines, "vmstat"))
    samples: list[Sample] = []
    for at_s, item in zip(clock.ends_s, kept, strict=True):
        samples += _gauges(at_s, item.row)
    if kept and not re.search(r"(-S|--unit)\s*=?\s*[mM]", command):
        samples += counters(
            "memory",
            {},
            clock,
            [{"swap_in_bytes": v * KIB if (v := f.row.get("si")) is not None else None} for f in kept],
        )
    if boot and found and not kept:
        values: dict[str, float | None] = {name: found[0].row.get(c) for c, name in INSTANT.items()}
        samples.append(Sample(at_s=0.0, probe="cpu", values=values))
    note = "the first line of vmstat covers the time since boot" + (
        ": only r and b are of that instant; run `vmstat -wt 1` for some seconds" if not kept else ""
    )
    return Reading(
        samples=tuple(samples),
        metrics=(*HOST_CPU, *HOST_TASKS, *DISK),
        lines=frozenset(claimed),
        skipped=tuple(skipped),
        notes=(note,) if boot and found else (),
        clock=clock.kind if kept else "none",
        wall_zero=clock.wall_zero,
    )


def _gauges(at_s: float, row: Row) -> tuple[Sample, ...]:
    cpu: dict[str, float | None] = {name: row[c] / 100 for c, name in CPU.items() if c in row}
    cpu |= {name: row[c] for c, name in INSTANT.items()}
    rates = {"read_bytes_per_s": "bi", "write_bytes_per_s": "bo"}
    disk: dict[str, float | None] = {name: row[c] * KIB for name, c in rates.items() if c in row}
    return (
        Sample(at_s=at_s, probe="cpu", values=cpu),
        Sample(at_s=at_s, probe="disk", labels={"device": "all of the host"}, values=disk),
    )


READER = Reader("vmstat", read)
