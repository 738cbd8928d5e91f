"""The load that left is held against the one that was due."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
import pytest

from perfdoctor.loadgen.arrivals import MIN_N, check
from perfdoctor.loadgen.schedule import due_times
from perfdoctor.model import Load


def schedule(arrival="poisson", rate=50.0, n=2000, **more):
    return due_times(Load(arrival=arrival, rate=rate, requests=n, **more))


@pytest.mark.parametrize(
    ("arrival", "burstiness", "cv", "dispersion"),
    [("constant", 1.0, 0.0, 0.0), ("poisson", 1.0, 1.0, 1.0), ("gamma", 0.25, 2.0, 3.3)],
)
def test_sent_on_time_is_as_asked(arrival, burstiness, cv, dispersion):
    """A tenth of a millisecond late: every process keeps its own character."""
    due_s = schedule(arrival, burstiness=burstiness)
    found = check(arrival, due_s, due_s + 1e-4)

    assert ("as_asked", "") == (found.status, found.reason)
    assert cv == pytest.approx(found.gap_cv, abs=0.15)
    assert dispersion == pytest.approx(found.dispersion, abs=0.8)
    assert found.asked_per_s == pytest.approx(found.sent_per_s, rel=1e-3)
    assert (1e-4, 1e-4) == pytest.approx((found.late_p50_s, found.late_p99_s))


def test_a_relative_sleep_loses_rate():
    """Each gap 8 % longer, as a pacer that sleeps from send to send."""
    due_s = schedule("constant")
    found = check("constant", due_s, due_s * 1.087)

    assert "deviates" == found.status
    assert "46 requests/s left, 50 were asked for" in found.reason


def test_constant_that_is_poisson():
    """Delivered by another clock: the rate is right, the gaps are not."""
    found = check("constant", schedule("constant"), schedule("poisson", n=2000))

    assert "deviates" == found.status
    assert "CV of 1.0" in found.reason


def test_bursts_of_a_busy_client():
    """Every second the client is gone for 0.4 s, and then sends at once what was due."""
    due_s = schedule("poisson")
    sent_s = np.where(due_s % 1 < 0.4, np.floor(due_s) + 0.4, due_s)
    found = check("poisson", due_s, sent_s)

    assert "deviates" == found.status
    assert "dispersion" in found.reason


def test_a_cap_that_holds_requests_back():
    """40 a second get through of 50 that are due: at the end a fifth is overdue."""
    due_s = schedule("constant")
    sent_s = list(accumulate(due_s[1:], lambda last, due: max(due, last + 1 / 40), initial=due_s[0]))
    found = check("constant", due_s, sent_s)

    assert "deviates" == found.status
    assert 0.2 == pytest.approx(found.ks_distance, abs=0.02)


@pytest.mark.parametrize(("unsent", "status"), [(19, "as_asked"), (20, "deviates")])
def test_requests_that_were_never_sent(unsent, status):
    """One in a hundred is told; None and NaN mean the same."""
    due_s = schedule("constant")
    sent_s = [*due_s[: 2000 - unsent], *[None, math.nan] * unsent][: len(due_s)]

    assert status == check("constant", due_s, sent_s).status


@pytest.mark.parametrize(("n", "status"), [(MIN_N - 1, "unknown"), (MIN_N, "as_asked")])
def test_too_few_to_tell(n, status):
    """Twenty requests at least."""
    due_s = schedule(n=n)
    found = check("poisson", due_s, due_s)

    assert (status, n) == (found.status, found.n)
    assert (status == "unknown") == bool(found.reason)


def test_nothing_was_sent():
    """No statistic exists, and the verdict is clear."""
    due_s = schedule(n=100)
    found = check("poisson", due_s, [None] * 100)

    assert "deviates" == found.status
    assert (None, None, None) == (found.sent_per_s, found.gap_cv, found.late_max_s)
