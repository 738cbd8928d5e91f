"""How many driver processes a load asks for.

One process takes in about 100,000 events a second before its core is full, but stamps them late long before
that, since reads queue behind each other. At 13,000 the 99th percentile of that wait was 1 ms, at 26,000 5 ms
(benchmarks/fleet.py, two cores with other work on them).
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from perfdoctor.model import Load, RequestRecord

EVENTS_PER_S = 20_000  # a process
MOST_PER_STREAM = 500.0  # tokens a second of one answer: chunks that arrive together have no gap to count
_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


class Pace:
    """How fast answers stream, seen from what one user at a time has received."""

    def __init__(self) -> None:
        self._gaps, self._gaps_s = 0, 0.0

    def note(self, record: RequestRecord) -> None:
        at_s = record.token_at_s
        if len(at_s) > 1:
            self._gaps += len(at_s) - 1
            self._gaps_s += at_s[-1] - at_s[0]

    @property
    def events_per_s(self) -> float | None:
        """Of one stream while it streams; None: no answer of two chunks was seen."""
        if not self._gaps:
            return None
        return min(MOST_PER_STREAM, self._gaps / self._gaps_s) if self._gaps_s else MOST_PER_STREAM


def events_per_s(load: Load, pace: Pace) -> float | None:
    """What the load will bring at most if no answer gets slower; None: nothing tells."""
    each = pace.events_per_s
    if load.arrival == "closed":
        return load.concurrency * each if each else None
    rate = max((rate for _, rate in load.ramp), default=load.rate)
    tokens = load.prompts.output_tokens
    by_rate = rate * tokens if rate and isinstance(tokens, int) else None
    by_cap = load.max_in_flight * each if load.max_in_flight and each else None
    return min((events for events in (by_rate, by_cap) if events), default=None)


def workers(events: float | None, cores: int) -> int:
    """One core is left to everything else."""
    return max(1, min(cores - 1, math.ceil((events or 0) / EVENTS_PER_S)))


def cores(cpu_max: Path = _CPU_MAX) -> int:
    """CPUs this process may use, its container's quota included."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = cpu_max.read_text().split()
        return min(allowed, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # no such file, or `max`: no quota
        return allowed
