"""Exact statistics: nearest-rank percentiles and their order-statistic intervals. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from perfdoctor.model import Spread

INTERVAL_MIN_N = 10  # below this the normal approximation says nothing
P99_MIN_N = 100  # below this the p99 is one of the two largest values, which is no percentile


def percentile(values: Sequence[float], p: float) -> float | None:
    """Nearest rank: the smallest value that at least share `p` of all values do not exceed.

    No interpolation, which would report times nobody had. None of nothing.
    """
    if not values:
        return None
    return _rank(sorted(values), p)


def _rank(ordered: Sequence[float], p: float) -> float:
    return ordered[max(0, math.ceil(p * len(ordered)) - 1)]


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def percentile_interval(values: Sequence[float], p: float, z: float = 1.96) -> tuple[float, float] | None:
    """95 % interval of a percentile from order statistics (normal approximation of the binomial rank).

    None below 10 values, where the approximation says nothing, and where the rank of an end lies outside of
    the sample: p95 needs 73 values, p99 381. The largest of fewer lies below the percentile too often.
    """
    return _interval(sorted(values), p, z)


def _interval(ordered: Sequence[float], p: float, z: float = 1.96) -> tuple[float, float] | None:
    ranks = interval_ranks(len(ordered), p, z)
    return None if ranks is None else (ordered[ranks[0] - 1], ordered[ranks[1] - 1])


def interval_ranks(n: int, p: float, z: float = 1.96) -> tuple[int, int] | None:
    """Ranks, from 1, of the ends of that interval; None where n values carry none."""
    half = z * math.sqrt(n * p * (1 - p))
    low, high = math.floor(n * p - half), math.ceil(n * p + half)
    return (low, high) if n >= INTERVAL_MIN_N and low >= 1 and high <= n else None


def least_n(p: float) -> int:
    """How many values carry an interval of a percentile."""
    return next(n for n in itertools.count(1) if interval_ranks(n, p))


def spread(values: Sequence[float]) -> Spread:
    """The table row of one latency; all None when empty, p99 None below 100 values."""
    if not values:
        return Spread()
    ordered = sorted(values)
    n = len(ordered)
    shares = {"p50": 0.50, "p90": 0.90, "p95": 0.95} | ({"p99": 0.99} if n >= P99_MIN_N else {})
    between = {name: found for name, p in shares.items() if (found := _interval(ordered, p))}
    return Spread(
        n=n,
        mean=mean(ordered),
        min=ordered[0],
        p50=_rank(ordered, 0.50),
        p90=_rank(ordered, 0.90),
        p95=_rank(ordered, 0.95),
        p99=_rank(ordered, 0.99) if n >= P99_MIN_N else None,
        max=ordered[-1],
        intervals=between,
    )
