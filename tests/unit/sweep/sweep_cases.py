"""Rows of a sweep, made by curves whose knee is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from perfdoctor.model import SweepLevel, Trust

DOUBLED = (1, 2, 4, 8, 16, 32, 64)


def row(level: float, requests_per_s: float | None = 1.0, **changes: Any) -> SweepLevel:
    """A level of a hundred requests, all answered, that can be trusted."""
    fields: dict[str, Any] = {
        "run": f"c{level:g}",
        "why": "doubled",
        "state": "complete",
        "requests": 100,
        "trust": Trust(status="valid"),
    }
    return SweepLevel(level=level, requests_per_s=requests_per_s, **(fields | changes))


def rows(curve: Callable[[float], float], levels: Sequence[float] = DOUBLED) -> list[SweepLevel]:
    """Of a rate, its throughput over it is the part that was served."""
    return [row(level, curve(level), served_share=min(1.0, curve(level) / level)) for level in levels]


def slots(c: int, service_s: float) -> Callable[[float], float]:
    """M/M/c with N users who do not think: N up to c are served at once, the others wait."""
    return lambda users: min(users, c) / service_s


def thinking(c: int, service_s: float, think_s: float) -> Callable[[float], float]:
    """M/M/c with users who think in between, exactly (machine repairman: a birth-death chain)."""

    def throughput(users: float) -> float:
        weights, weight = [], 1.0
        for k in range(int(users) + 1):  # at the server
            weights.append(weight)
            weight *= (users - k) / think_s / (min(k + 1, c) / service_s)
        busy = math.fsum(min(k, c) * w for k, w in enumerate(weights)) / math.fsum(weights)
        return busy / service_s

    return throughput


def batching(most: int, fixed_s: float, each_s: float) -> Callable[[float], float]:
    """Up to `most` are stepped together, and a step is longer by `each_s` for each of them."""

    def throughput(users: float) -> float:
        together = min(users, most)
        return together / (fixed_s + each_s * together)

    return throughput
