"""Pauses that all streams share: what stops a whole server at once shows in no percentile of one stream.

A loop that is blocked half of the time gives each stream one long gap among many short ones, so p95 of the
gaps stays where it was while throughput halves. Seen across streams, nothing at all arrived meanwhile.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from perfdoctor import latency, stats
from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.model import RequestRecord

LEAST_S = 0.05  # guess: shorter pauses are steps
TIMES = 8.0  # guess: of the median gap of one stream; a prefill between two steps makes 2 to 5
STREAMS = 2  # one stream alone cannot share a pause


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing arrived on any stream from `start_s` to `end_s`, though `streams` of them were decoding."""

    start_s: float
    end_s: float
    streams: int


def shared_stalls(records: Sequence[RequestRecord]) -> tuple[list[Stall], float, float]:
    """(stalls, seconds in which at least two streams were decoding, usual gap of one stream).

    NoValue when fewer than two streams ever decoded at a time.
    """
    spans = [(r.token_at_s[0], r.token_at_s[-1]) for r in records if len(r.token_at_s) > 1]
    usual = stats.percentile([gap for r in records for gap in latency.gaps(r)], 0.5)
    stamps = sorted({at for r in records for at in r.token_at_s})
    starts, ends = sorted(a for a, _ in spans), sorted(b for _, b in spans)
    stalls, covered = [], 0.0
    for start, end in itertools.pairwise(stamps):
        streams = bisect.bisect_right(starts, start) - bisect.bisect_right(ends, start)
        if streams < STREAMS:
            continue
        covered += end - start
        if end - start >= max(LEAST_S, TIMES * (usual or 0.0)):
            stalls.append(Stall(start, end, streams))
    if not covered:
        raise NoValue("at no time were two streams decoding together")
    return stalls, covered, usual or 0.0


def _steady(obs: Observations) -> tuple[list[Stall], float, float]:
    return obs.once("stalls", lambda: shared_stalls(obs.ok("steady")))


@signal("stall.shared.share", unit="share")
def shared(obs: Observations) -> Reading:
    """Share of the time with several streams decoding in which nothing arrived on any of them for far longer
    than usual (8 times the median gap and 50 ms), the usual gap not counted.

    Missing when never two streams decoded together. Cross-check: two `curl -N` side by side stop at once.
    """
    stalls, covered, usual = _steady(obs)
    return Reading(sum(s.end_s - s.start_s - usual for s in stalls) / covered, n=len(stalls))


@signal("stall.shared.p50", unit="s")
def length(obs: Observations) -> Reading:
    """Median length of those pauses, in seconds. Missing when there were none."""
    stalls, _, _ = _steady(obs)
    found = stats.percentile([s.end_s - s.start_s for s in stalls], 0.5)
    if found is None:
        raise NoValue("no pause was shared by all streams")
    return Reading(found, n=len(stalls))


SIGNALS = (shared, length)
