"""mpstat: how busy the host's CPUs are, together and one by one, an interval at a time.

Reads sysstat's `mpstat [-P ALL]` of all versions and `-o JSON`; the lines of averages at the end, NUMA
nodes and interrupt tables are left out. One CPU at 100 % beside idle ones is a program with one busy
thread; %steal is time the hypervisor gave away; %iowait is idle time with IO outstanding, and hidden by any
other work.

Make it: `mpstat -P ALL 1`, while the server is slow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from perfdoctor.evidence._banner import Banner, banner_of, interval_of
from perfdoctor.evidence._intervals import Stamp, clock_of, stamp_of
from perfdoctor.evidence._metrics import CORE, HOST_CPU
from perfdoctor.evidence._numbers import share
from perfdoctor.evidence._reader import Reader, Reading, Skipped
from perfdoctor.evidence._source import Line, Source
from perfdoctor.model import Sample

CPU = {"%idle": "host_idle_share", "%iowait": "host_iowait_share", "%steal": "host_steal_share"}
_HEADER = re.compile(r"\s(CPU|NODE)\s+%\w+.*%idle")
_ROW = re.compile(r"^\s*(\d[\d:.]+(?:\s+[AP]M)?)\s+(all|\d+)\s+(.*)$")
_AVERAGE = re.compile(r"^\s*\w+\s?:\s+(all|CPU|NODE|\d+)\s")
_STAMP = re.compile(r'"timestamp":\s*"([\d:]+)"')


@dataclass(slots=True)
class _Parser:
    banner: Banner | None = None
    columns: tuple[str, ...] = ()
    rows: dict[str, dict[str, Mapping[str, float | None]]] = field(
        default_factory=dict
    )  # stamp -> CPU -> row
    stamp: str = ""
    claimed: set[int] = field(default_factory=set)
    skipped: list[Skipped] = field(default_factory=list)

    def read(self, line: Line) -> None:
        text = line.text
        if found := banner_of(text):
            self.banner = self.banner or found
        elif '"cpu":' in text and '"idle":' in text:
            self._json(line)
        elif match := _STAMP.search(text):
            self.stamp = match[1]
        elif match := _HEADER.search(text):
            self.claimed.add(line.number)
            names = text[match.start() :].split()
            self.columns = tuple(names[1:]) if names[0] == "CPU" else ()
        elif self.columns and (match := _ROW.match(text)):
            self.claimed.add(line.number)
            self._row(line, match[1], match[2], match[3].split())
        elif self.columns and _AVERAGE.match(text):
            self.claimed.add(line.number)

    def _row(self, line: Line, stamp: str, cpu: str, cells: list[str]) -> None:
        if len(cells) != len(self.columns):
            self.skipped.append(Skipped(line.number, f"{len(cells)} of {len(self.columns)} columns"))
            return
        self._keep(line, stamp, cpu, {c: share(v) for c, v in zip(self.columns, cells, strict=True)})

    def _keep(self, line: Line, stamp: str, cpu: str, row: Mapping[str, float | None]) -> None:
        idle = row.get("%idle")
        if idle is None or not 0 <= idle <= 1:
            self.skipped.append(Skipped(line.number, "no share of idle time"))
            return
        self.rows.setdefault(stamp, {})[cpu] = row

    def _json(self, line: Line) -> None:
        self.claimed.add(line.number)
        try:
            found = json.loads(line.text.strip().rstrip(","))
            items = {f"%{k}": share(str(v)) for k, v in found.items() if k != "cpu"}
            self._keep(line, self.stamp, str(found["cpu"]), items)
        except (ValueError, AttributeError, KeyError, RecursionError):
            self.skipped.append(Skipped(line.number, "no JSON object"))


def read(source: Source) -> Reading | None:
    """Samples `cpu` of the host and `cpu.core` of each CPU."""
    parser = _Parser()
    for line in source.lines:
        parser.read(line)
    if not parser.rows and not parser.skipped:
        return None
    clock = clock_of([_stamp(s, parser.banner) for s in parser.rows], interval_of(source.lines, "mpstat"))
    cores = parser.banner.cores if parser.banner else None
    found = []
    for at_s, rows in zip(clock.ends_s, parser.rows.values(), strict=True):
        for cpu, row in rows.items():
            if cpu == "all":
                values = {CPU[c]: row.get(c) for c in CPU} | ({"host_cores": cores} if cores else {})
                found.append(Sample(at_s=at_s, probe="cpu", values=values))
            else:
                busy = 1 - (row["%idle"] or 0.0) - (row.get("%iowait") or 0.0)
                found.append(
                    Sample(at_s=at_s, probe="cpu.core", labels={"core": cpu}, values={"busy_share": busy})
                )
    return Reading(
        samples=tuple(found),
        metrics=(*HOST_CPU, *CORE),
        lines=frozenset(parser.claimed),
        skipped=tuple(parser.skipped),
        clock=clock.kind,
        wall_zero=clock.wall_zero,
    )


def _stamp(text: str, banner: Banner | None) -> Stamp | None:
    return stamp_of(text, banner.date if banner else None)


READER = Reader("mpstat", read)
