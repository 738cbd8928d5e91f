"""The first line of every sysstat tool, and the interval of a command that was pasted with its output."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from perfdoctor.evidence._intervals import date_of
from perfdoctor.evidence._source import Line

_BANNER = re.compile(r"^\s*Linux (\S+) \(([^)]*)\)\s+(\S+)\s+_\w+_\s*(?:\((\d+) CPUs?\))?")


@dataclass(frozen=True, slots=True)
class Banner:
    """`Linux 6.1.0 (host)  12/01/2026  _x86_64_  (8 CPU)`; old versions print no CPUs."""

    kernel: str
    host: str
    date: tuple[int, int, int] | None
    cores: float | None


def banner_of(text: str) -> Banner | None:
    match = _BANNER.match(text)
    if not match:
        return None
    return Banner(match[1], match[2], date_of(match[3]), float(match[4]) if match[4] else None)


def interval_of(lines: Iterable[Line], tool: str) -> float | None:
    """Seconds between two reports, where the command line was pasted too: `$ iostat -x nvme0n1 2 10`."""
    pattern = re.compile(rf"(?:^|[\s#$/])(?:{tool})\s[^|;]*?\s(\d{{1,4}})(?:\s+\d{{1,6}})?\s*(?:[|;>].*)?$")
    for line in lines:
        if tool in line.text and len(line.text) < 300 and (match := pattern.search(line.text)):
            return float(match[1]) or None
    return None
