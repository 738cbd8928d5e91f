"""How much one measured quantity differs from another, and how sure that is: ratios with 95 % intervals.

Three grounds, by what there is:

    requests of one run each   how far these values, drawn again, would move the ratio. Successive answers
                               of a queue are alike, so n counts as if it were smaller, by how much whole
                               stretches of the run differ. How far two runs differ is not in it.
    several runs each          Student's t on the logarithms of their values, with one spread for both
                               sides, so that a side of a single run borrows the other's.
    pairs                      runs made in turn, so that what drifts hits both: the median of the means of
                               any two of the log ratios (Hodges and Lehmann 1963), which one bad pair moves
                               little, and a bootstrap widened for few pairs (Hesterberg 2015, section 3.3).

Of equal sides about one comparison in twenty finds a difference: tests/unit/test_change.py draws them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfdoctor import stats

if TYPE_CHECKING:
    import numpy

DEFINITIONS = {
    "ratio": "of two runs or folders (compare): the value after over the value before, so that of a time "
    "above 1 is slower; of a fix (verify): the time without it over the time with it, above 1 it helped",
    "interval_95": "where a ratio lies if chance alone makes two measurements differ: over the requests of "
    "one run each, discounted by how alike successive ones are; over runs by Student's t; over pairs by a "
    "bootstrap. One that leaves out 1 is a change",
    "noise_floor": "how far from 1 the ratio of as many pairs would lie by chance if both sides were equal, "
    "from runs of one side that follow each other; an effect inside it is none",
    "pairs": "two runs made one after the other, one of each side, in an order that turns round from pair to "
    "pair, so that what drifts hits both sides alike",
    "changes_output": "greedy answers to the same questions are not the same with the fix; told with the "
    "first token that differs, and whether one at a time or only when several are asked at once",
}
RESAMPLES = 2000
SEED = 20261130  # of the resampling: the same runs give the same interval
Z = 1.96
LEAST_N = 10  # values; of fewer, stretches of a run cannot be told from one another
MOST_STRETCHES = 10
# Student's t, 97.5 %, by degrees of freedom; from there on it is near enough to 1.96 + 2.5 / df.
_T = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


@dataclass(frozen=True, slots=True)
class Change:
    """`ratio` is after / before, between `low` and `high`; of shares it is after - before."""

    ratio: float
    low: float
    high: float
    none: float = 1.0  # its value where nothing changed

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out that nothing changed."""
        return not self.low <= self.none <= self.high


def student_t(df: int) -> float:
    return _T[df - 1] if df <= len(_T) else Z + 2.5 / df


# ------------------------------------------------------------------------------ pairs


def of_pairs(ratios: Sequence[float]) -> Change | None:
    """Over pairs of runs. None below three: two numbers have no spread worth the name."""
    import numpy as np

    n = len(ratios)
    if n < 3 or min(ratios) <= 0:
        return None
    logs = np.log(np.asarray(ratios, dtype=float))
    middle = float(_pseudomedian(logs[None, :])[0])
    drawn = logs[np.random.default_rng(SEED).integers(0, n, (RESAMPLES, n))]
    low, high = np.percentile(_pseudomedian(drawn), (2.5, 97.5))
    wider = student_t(n - 1) / Z * math.sqrt(n / (n - 1))
    return Change(*map(math.exp, (middle, middle + (low - middle) * wider, middle + (high - middle) * wider)))


def _pseudomedian(rows: numpy.ndarray) -> numpy.ndarray:
    """Of each row: the median of the means of any two of its values, each with itself too."""
    import numpy as np

    first, second = np.triu_indices(rows.shape[1])
    return np.median((rows[:, first] + rows[:, second]) / 2, axis=1)  # type: ignore[no-any-return]


def noise_floor(ratios: Sequence[float], pairs: int) -> float | None:
    """How far from 1, as a factor, `pairs` pairs of equal sides would put their ratio by chance (95 %).

    `ratios` are of pairs known to be equal, so their spread is taken about 1. None below three.
    """
    n = len(ratios)
    if n < 3 or min(ratios) <= 0 or pairs < 1:
        return None
    spread = math.sqrt(math.fsum(math.log(r) ** 2 for r in ratios) / n)
    return math.exp(student_t(n) * spread / math.sqrt(pairs))


# ------------------------------------------------------------------------------ several runs


def of_runs(before: Sequence[float], after: Sequence[float]) -> Change | None:
    """Over runs, one value each. None where there is one of each, or a value is not above zero."""
    n, m = len(before), len(after)
    if min(n, m) < 1 or n + m < 3 or min(*before, *after) <= 0:
        return None
    old, new = [math.log(v) for v in before], [math.log(v) for v in after]
    middle = math.fsum(new) / m - math.fsum(old) / n
    squares = sum(math.fsum((v - math.fsum(logs) / len(logs)) ** 2 for v in logs) for logs in (old, new))
    half = student_t(n + m - 2) * math.sqrt(squares / (n + m - 2) * (1 / n + 1 / m))
    return Change(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


# ------------------------------------------------------------------------------ requests of one run each


def of_percentiles(before: Sequence[float], after: Sequence[float], p: float) -> Change | None:
    """Of the nearest-rank percentile `p`; values in the order in which their requests were sent.

    None where too few values carry an interval of it: 10 for a median, 73 for a p95.
    """
    import numpy as np

    was, now = stats.percentile(before, p), stats.percentile(after, p)
    draw = np.random.default_rng(SEED)
    drawn = _drawn_percentiles(before, p, draw), _drawn_percentiles(after, p, draw)
    if not was or not now or drawn[0] is None or drawn[1] is None:
        return None
    low, high = np.percentile(np.log(drawn[1] / drawn[0]), (2.5, 97.5))
    middle = math.log(now / was)
    wider = student_t(len(_stretches(min(len(before), len(after)))) - 1) / Z
    low, high = middle + min(0.0, low - middle) * wider, middle + max(0.0, high - middle) * wider
    return Change(now / was, math.exp(low), math.exp(high))


def _drawn_percentiles(
    values: Sequence[float], p: float, draw: numpy.random.Generator
) -> numpy.ndarray | None:
    """The percentile of samples drawn anew from `values`. Which value it is has a beta distribution, so no
    sample need be drawn and sorted."""
    import numpy as np

    ordered = np.sort(np.asarray(values, dtype=float))
    if not len(ordered) or min(ordered) <= 0:
        return None
    at = ordered[max(0, math.ceil(p * len(ordered)) - 1)]
    alike = _alike([float(v > at) for v in values])
    n = len(ordered) / alike
    if stats.interval_ranks(int(n), p) is None:
        return None
    k = max(1.0, math.ceil(p * n))
    places = draw.beta(k, max(n + 1 - k, 1e-9), RESAMPLES)
    found: numpy.ndarray = ordered[np.minimum((places * len(ordered)).astype(int), len(ordered) - 1)]
    return found


def of_means(before: Sequence[float], after: Sequence[float]) -> Change | None:
    return of_rates((before, [1.0] * len(before)), (after, [1.0] * len(after)))


Work = tuple[Sequence[float], Sequence[float]]  # what was done, and the time it took, bit by bit


def of_rates(before: Work, after: Work) -> Change | None:
    """Of the sum of what was done over the sum of what it took; both in the order in which it was done."""
    sides = [_rate(*side) for side in (before, after)]
    if any(side is None for side in sides):
        return None
    (was, loose_was, n), (now, loose_now, m) = (side for side in sides if side is not None)
    half = student_t(min(n, m) - 1) * math.hypot(loose_was, loose_now)
    return Change(now / was, now / was * math.exp(-half), now / was * math.exp(half))


def _rate(done: Sequence[float], took: Sequence[float]) -> tuple[float, float, int] | None:
    """The rate, its standard error as a share of it, and the stretches that this is from."""
    whole, time = math.fsum(done), math.fsum(took)
    if len(done) < LEAST_N or whole <= 0 or time <= 0:
        return None
    rate = whole / time
    parts = _stretches(len(done))
    left = [math.fsum(d - rate * t for d, t in zip(done[a:b], took[a:b], strict=True)) for a, b in parts]
    m = len(parts)
    return rate, math.sqrt(math.fsum(v * v for v in left) * m / (m - 1)) / whole, m


def _alike(values: Sequence[float]) -> float:
    """How many times as much whole stretches of values differ as they would if each value were drawn by
    itself; at least 1."""
    n = len(values)
    middle = math.fsum(values) / n
    alone = math.fsum((v - middle) ** 2 for v in values)
    if n < LEAST_N or not alone:
        return 1.0
    parts = _stretches(n)
    sums = [math.fsum(values[a:b]) - middle * (b - a) for a, b in parts]
    together = math.fsum(s * s for s in sums) * len(parts) / (len(parts) - 1)
    return min(max(1.0, together / alone), n / LEAST_N)


def _stretches(n: int) -> list[tuple[int, int]]:
    """Ten at most, so that each is long enough to hold what is alike; of few values fewer."""
    parts = min(MOST_STRETCHES, max(3, math.isqrt(n)))
    edges = [round(n * i / parts) for i in range(parts + 1)]
    return list(itertools.pairwise(edges))


# ------------------------------------------------------------------------------ shares


def of_shares(hits: int, n: int, hits_after: int, m: int) -> Change | None:
    """The difference of two shares, after - before (Newcombe 1998, method 10, from Wilson's intervals)."""
    if not n or not m:
        return None
    was, now = hits / n, hits_after / m
    low, high = _wilson(hits, n)
    low_now, high_now = _wilson(hits_after, m)
    return Change(
        now - was,
        now - was - math.hypot(now - low_now, high - was),
        now - was + math.hypot(high_now - now, was - low),
        none=0.0,
    )


def _wilson(hits: int, n: int) -> tuple[float, float]:
    p, z2 = hits / n, Z * Z
    middle, half = p + z2 / (2 * n), Z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return max(0.0, (middle - half) / (1 + z2 / n)), min(1.0, (middle + half) / (1 + z2 / n))
