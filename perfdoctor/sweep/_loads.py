"""The load of one level: how it is warmed up and how long it lasts. Pure."""

from __future__ import annotations

import math

import msgspec

from perfdoctor.model import Load, Over, SweepLevel
from perfdoctor.sweep._steps import ENOUGH

LONGER = 4.0  # times as long is a level that is run again to decide on the SLO
AMPLE = 1.5  # times the requests that are needed: of a Poisson process, so many bring them almost surely
MOST_LONGER = 8.0  # at most, however many requests are missing
DURATION_S = 10.0


def load_of(
    base: Load, over: Over, level: float, before: SweepLevel | None, warms_up: bool, times: float = 1.0
) -> Load:
    """`before`: the level run last, whose pace says how long this one has to be. `warms_up`: nothing was
    asked for, so every user sends one request first, or as many arrive as fit into one answer's time."""
    duration_s = base.duration_s
    if duration_s is None and base.requests is None:
        duration_s = DURATION_S
    changes: dict[str, object] = {}
    if duration_s is not None:
        expected = level if over == "rate" else before.requests_per_s if before else None
        least_s = AMPLE * ENOUGH / expected if expected else 0.0
        longest_s = MOST_LONGER * duration_s
        changes["duration_s"] = min(max(duration_s, least_s) * times, longest_s)
    if base.requests is not None:
        changes["requests"] = math.ceil(base.requests * times)
    if over == "concurrency":
        changes["concurrency"] = int(level)
        if warms_up:
            changes["warmup_requests"] = int(level)
    else:
        changes["rate"] = level
        if warms_up and duration_s is not None:
            took_s = (before.e2e_p95_s or before.e2e_p50_s or 0.0) if before else 0.0
            changes["warmup_s"] = min(max(1.0, took_s), duration_s)
    return msgspec.structs.replace(base, **changes)


def times_longer(needed: int, row: SweepLevel) -> float:
    """How much longer a level is run again, so that `needed` requests may come of it."""
    answered = max(1, row.requests - row.failed)
    return min(MOST_LONGER, max(LONGER if row.slo else 1.0, AMPLE * needed / answered))
