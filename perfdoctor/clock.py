"""One monotonic clock for the whole run, shared with child processes on this host.

`time.perf_counter_ns` is CLOCK_MONOTONIC on Linux, which all processes of a host share, so a child that is
told the zero can stamp on the same axis. Wall time is read once, as an anchor.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timezone


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds since `zero_ns`. `wall_zero` is the ISO 8601 UTC time of the zero."""

    zero_ns: int = field(default_factory=time.perf_counter_ns)
    wall_zero: str = field(
        default_factory=lambda: datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    )

    def now(self) -> float:
        return (time.perf_counter_ns() - self.zero_ns) / 1e9

    def at(self, stamp_ns: int) -> float:
        """A raw perf_counter_ns stamp on this axis."""
        return (stamp_ns - self.zero_ns) / 1e9
