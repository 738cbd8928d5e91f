"""Percentiles by the server's own histograms: differences of two scrapes, never totals since it started."""

from __future__ import annotations

import math

from perfdoctor import buckets
from perfdoctor.diagnosis.measure import Measure, Reading
from perfdoctor.diagnosis.observations import NoValue, Observations, Window


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
    added = buckets.gained(first.values, inside[-1].values)
    if any(value < 0 for value in added.values()):
        raise NoValue(f"the server's {histogram} histogram was set back: it was restarted")
    if not any(added.values()):
        raise NoValue(f"nothing was added to the server's {histogram} histogram")
    return added


def _measure(histogram: str, meaning: str, name: str, p: float) -> Measure:
    def compute(obs: Observations) -> Reading:
        found = buckets.percentile(gains(obs.phase("steady"), histogram), p)
        if math.isinf(found.high_s):
            raise NoValue(f"it is above {found.low_s:g} s, the histogram's last edge")
        source = f"a bucket of {found.low_s:g} to {found.high_s:g} s"
        return Reading(found.middle_s, found.n, source, low=found.low_s, high=found.high_s)

    page = (
        f"{name} of the {meaning}, by the server's own histogram over the steady phase, in seconds.\n\n"
        "The middle of its bucket, whose edges the source names: half its width is the error. Missing where "
        "the server has no such histogram, and above its last edge. Cross-check: two scrapes of /metrics."
    )
    return Measure(f"engine.{histogram}.{name}", "s", compute, page)


SIGNALS = tuple(
    _measure(histogram, meaning, name, p)
    for histogram, meaning in buckets.HISTOGRAMS.items()
    for name, p in buckets.PERCENTILES.items()
)
