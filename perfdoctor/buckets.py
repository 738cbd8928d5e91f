"""Percentiles of a stretch of time from two readings of a server's cumulative histogram. Pure.

Such a percentile is an interval: it lies between the edges of its bucket, and beyond the last edge only its
lower end is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

HISTOGRAMS = {
    "queue": "time a request waited before its prefill",
    "prefill": "time of a prefill",
    "ttft": "time to the first token as the server saw it",
    "itl": "time between tokens",
    "e2e": "time of a whole request as the server saw it",
}
PERCENTILES = {"p50": 0.50, "p95": 0.95}


@dataclass(frozen=True, slots=True)
class Between:
    """A percentile lies above `low_s` and at most at `high_s`; `high_s` is infinite in the last bucket."""

    low_s: float
    high_s: float
    n: int

    @property
    def middle_s(self) -> float:
        return (self.low_s + self.high_s) / 2


def gained(first: Mapping[str, float | None], last: Mapping[str, float | None]) -> dict[float, float]:
    """Observations that came between two readings, by upper edge, cumulative; negative ones of a restart."""
    found = {
        float(edge.replace("+Inf", "inf")): (count or 0.0) - (first.get(edge) or 0.0)
        for edge, count in last.items()
    }
    return dict(sorted(found.items()))


def percentile(added: Mapping[float, float], p: float) -> Between:
    """The bucket of the nearest rank. `added` is cumulative by upper edge, the last one holds all."""
    total = max(added.values())
    rank, low = max(1.0, math.ceil(p * total)), 0.0
    for edge, count in added.items():
        if count >= rank:
            return Between(low, edge, int(total))
        low = edge
    return Between(low, math.inf, int(total))
