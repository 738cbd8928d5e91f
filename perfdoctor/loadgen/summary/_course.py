"""How a load went on: counts and latencies in equal bins of its time. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from itertools import accumulate, pairwise

from perfdoctor import latency, stats
from perfdoctor.loadgen.summary._window import Window, arrivals
from perfdoctor.model import Interval, RequestRecord

MOST_BINS = 120
LEAST_BIN_S = 0.5


def course(records: Sequence[RequestRecord], window: Window | None) -> tuple[Interval, ...]:
    """Empty for a load of less than two bins."""
    if window is None or window[1] - window[0] < 2 * LEAST_BIN_S:
        return ()
    start_s, width_s = window[0], window[1] - window[0]
    count = min(MOST_BINS, int(width_s / LEAST_BIN_S))
    edges = [start_s + width_s * i / count for i in range(count + 1)]
    sent, ended = _Steps([r.sent_s for r in records]), _Steps([r.end_s for r in records])
    tokens, ttfts = [0.0] * count, [list[float]() for _ in range(count)]
    good, bad, begun = [0.0] * count, [0.0] * count, [0.0] * count
    for r in records:
        for at, weight in arrivals(r):
            _add(tokens, edges, at, weight)
        _add(begun, edges, r.sent_s, 1)
        if not r.censored:
            _add(good if r.outcome == "ok" else bad, edges, r.end_s, 1)
        ttft, at_bin = latency.ttft(r), _bin(edges, r.first_token_s)
        if ttft is not None and at_bin is not None:
            ttfts[at_bin].append(ttft)
    return tuple(
        Interval(
            start_s=low,
            end_s=high,
            in_flight=(sent.integral(low, high) - ended.integral(low, high)) / (high - low),
            sent=int(begun[i]),
            ok=int(good[i]),
            failed=int(bad[i]),
            output_tokens=round(tokens[i], 3),
            ttft_p50_s=stats.percentile(ttfts[i], 0.5),
        )
        for i, (low, high) in enumerate(pairwise(edges))
    )


class _Steps:
    """A count that rises by one at each instant, and the area below it."""

    def __init__(self, at_s: Sequence[float | None]) -> None:
        self._at_s = sorted(at for at in at_s if at is not None)
        self._sums = [0.0, *accumulate(self._at_s)]

    def integral(self, low_s: float, high_s: float) -> float:
        return self._until(high_s) - self._until(low_s)

    def _until(self, at_s: float) -> float:
        n = bisect.bisect_right(self._at_s, at_s)
        return n * at_s - self._sums[n]


def _bin(edges: Sequence[float], at_s: float | None) -> int | None:
    if at_s is None or not edges[0] < at_s <= edges[-1]:
        return None
    return bisect.bisect_left(edges, at_s) - 1


def _add(bins: list[float], edges: Sequence[float], at_s: float | None, weight: float) -> None:
    found = _bin(edges, at_s)
    if found is not None:
        bins[found] += weight
