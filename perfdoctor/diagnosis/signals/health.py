"""How long the server's front end leaves a question that costs nothing unanswered."""

from __future__ import annotations

from perfdoctor import stats
from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations

PROMPT_S = 0.05  # guess: an answer within it is no sign of a blocked loop


@signal("health.latency.p95", unit="s")
def latency(obs: Observations) -> Reading:
    """95th percentile of a GET /health during the steady phase, in seconds.

    Missing when the server knows no such path. Cross-check: `curl -w '%{time_total}' URL/health`.
    """
    found = obs.phase("steady").gauge("health", "latency_s")
    return Reading(stats.percentile(found, 0.95) or 0.0, n=len(found))


@signal("health.unanswered.share", unit="share")
def unanswered(obs: Observations) -> Reading:
    """Share of the steady phase in which such a question had been waiting for longer than 50 ms, 0-1.

    One question at a time, so waiting times do not overlap and add up to a share. Missing like
    `health.latency.p95`. High with one event loop for everything that is blocked by a handler.
    """
    window = obs.phase("steady")
    found = window.gauge("health", "latency_s")
    if len(found) < 3:
        raise NoValue(f"the front end was asked only {len(found)} times in the steady phase")
    waited = sum(max(0.0, value - PROMPT_S) for value in found)
    return Reading(min(1.0, waited / window.seconds), n=len(found))


SIGNALS = (latency, unanswered)
