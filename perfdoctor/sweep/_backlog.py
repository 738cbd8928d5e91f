"""Whether the rate of an open loop was served as it came. Pure.

At a rate that is served, an answer takes as long at the end of a level as at its beginning. Above that what
is not served piles up, and each answer takes longer than the one before. If the time to a whole answer, from
when it was due, grows by b seconds a second, then what was due in one second is answered in 1 + b seconds:
the server serves 1 / (1 + b) of the rate.

The answers that come while the load lasts, over its length, would say the same of a long load only: what is
open at both ends is as much as arrives in the time of one answer, which of a level of ten seconds and answers
of four is nearly half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from perfdoctor.model import RequestRecord

LEAST = 20  # requests; a guess: of fewer, two long answers at the end make a growth
SURE = 2.0  # standard errors of the growth that chance does not reach


def served_share(records: Sequence[RequestRecord]) -> float | None:
    """Of the rate, 0-1; 1 where chance explains the growth. None below 20 requests that were not failures.

    By least squares. Successive answers of a queue are alike, so the standard error is too small, and a rate
    just below what the server can do may count as above it.
    """
    points = list(_answered(records))
    n = len(points)
    if n < LEAST:
        return None
    mean_at, mean_took = (math.fsum(values) / n for values in zip(*points, strict=True))
    spread = math.fsum((at - mean_at) ** 2 for at, _ in points)
    if not spread:
        return None
    growth = math.fsum((at - mean_at) * (took - mean_took) for at, took in points) / spread
    left = math.fsum((took - mean_took - growth * (at - mean_at)) ** 2 for at, took in points)
    error = math.sqrt(left / (n - 2) / spread)
    return 1 / (1 + growth) if growth > SURE * error else 1.0


def _answered(records: Sequence[RequestRecord]) -> Iterator[tuple[float, float]]:
    """(due, seconds to the end from then); of what was cut off at the end, those until then. Later turns of a
    conversation are due when the turn before was answered, so they never wait for a schedule."""
    for record in records:
        counts = record.outcome == "ok" or record.censored
        if counts and record.end_s is not None and (record.turn or 1) == 1:
            yield record.due_s, record.end_s - record.due_s
