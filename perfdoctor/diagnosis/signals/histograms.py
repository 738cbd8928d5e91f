"""Percentiles by the server's own histograms: differences of two scrapes, never totals since it started.

A percentile from buckets is an interval: it lies between the edges of its bucket, and beyond the last edge
only its lower end is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from perfdoctor.diagnosis.measure import Measure, Reading
from perfdoctor.diagnosis.observations import NoValue, Observations, Window

_HISTOGRAMS = {
    "queue": "time a request waited before its prefill",
    "prefill": "time of a prefill",
    "ttft": "time to the first token as the server saw it",
    "itl": "time between tokens",
    "e2e": "time of a whole request as the server saw it",
}
_PERCENTILES = {"p50": 0.50, "p95": 0.95}


@dataclass(frozen=True, slots=True)
class Between:
    """A percentile lies above `low_s` and at most at `high_s`; `high_s` is infinite in the last bucket."""

    low_s: float
    high_s: float
    n: int

    @property
    def middle_s(self) -> float:
        return (self.low_s + self.high_s) / 2


def gains(window: Window, histogram: str) -> dict[float, float]:
    """Observations that the window added, by upper edge, cumulative. NoValue without two readings of it."""
    samples = [
        s for s in window.observations.samples("engine.bucket") if s.labels.get("histogram") == histogram
    ]
    inside = [s for s in samples if window.start_s <= s.at_s <= window.end_s]
    before = [s for s in samples if s.at_s < window.start_s]
    first = before[-1] if before else inside[0] if inside else None
    if first is None or not inside or inside[-1] is first:
        raise NoValue(f"the server's {histogram} histogram was not read twice in the {window.name} phase")
    return _difference(first.values, inside[-1].values, histogram)


def _difference(
    first: Mapping[str, float | None], last: Mapping[str, float | None], histogram: str
) -> dict[float, float]:
    found = {
        float(edge.replace("+Inf", "inf")): (count or 0.0) - (first.get(edge) or 0.0)
        for edge, count in last.items()
    }
    if any(value < 0 for value in found.values()):
        raise NoValue(f"the server's {histogram} histogram was set back: it was restarted")
    if not any(found.values()):
        raise NoValue(f"nothing was added to the server's {histogram} histogram")
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


def _measure(histogram: str, meaning: str, name: str, p: float) -> Measure:
    def compute(obs: Observations) -> Reading:
        found = percentile(gains(obs.phase("steady"), histogram), p)
        if math.isinf(found.high_s):
            raise NoValue(f"it is above {found.low_s:g} s, the histogram's last edge")
        return Reading(found.middle_s, n=found.n, source=f"a bucket of {found.low_s:g} to {found.high_s:g} s")

    page = (
        f"{name} of the {meaning}, by the server's own histogram over the steady phase, in seconds.\n\n"
        "The middle of its bucket, whose edges the source names: half its width is the error. Missing where "
        "the server has no such histogram, and above its last edge. Cross-check: two scrapes of /metrics."
    )
    return Measure(f"engine.{histogram}.{name}", "s", compute, page)


SIGNALS = tuple(
    _measure(histogram, meaning, name, p)
    for histogram, meaning in _HISTOGRAMS.items()
    for name, p in _PERCENTILES.items()
)
