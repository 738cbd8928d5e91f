"""When a line was written, as far as it says so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

_DATED = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)(?: - |[T ])(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)
_YEARLESS = re.compile(r"\b(?:DEBUG|INFO|WARNING|ERROR) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\b")
_UPTIME = re.compile(r"^\s*(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) [DIWE] ")
LEAP = 2000  # a year in which every month and day exists


@dataclass(frozen=True, slots=True)
class Stamp:
    """Only stamps of one `clock` may be subtracted. yearless: of vLLM, which leaves the year out; uptime: of
    llama.cpp, since its process began. `wall` is ISO 8601, with an offset only if the line has one."""

    seconds: float
    clock: Literal["dated", "yearless", "uptime"]
    wall: str | None = None


def read_stamp(text: str) -> Stamp | None:
    """The first stamp of a line: what a container runtime puts before it comes first and is the finer one."""
    if match := _DATED.search(text):
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        micro = int((match[7] or "").ljust(6, "0")[:6])
        return _dated(f"{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}", match[8])
    if match := _YEARLESS.search(text):
        month, day, hour, minute, second = (int(part) for part in match.groups())
        try:
            at = datetime(LEAP, month, day, hour, minute, second, tzinfo=timezone.utc)
        except ValueError:
            return None
        return Stamp(at.timestamp(), "yearless")
    if match := _UPTIME.search(text):
        minutes, seconds, millis, micros = (int(part) for part in match.groups())
        return Stamp(minutes * 60 + seconds + millis / 1e3 + micros / 1e6, "uptime")
    return None


def _dated(text: str, offset: str | None) -> Stamp | None:
    zone = "+00:00" if offset == "Z" else offset or ""
    if zone and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    try:
        at = datetime.fromisoformat(text + zone)
    except ValueError:
        return None
    return Stamp((at if zone else at.replace(tzinfo=timezone.utc)).timestamp(), "dated", text + zone)
