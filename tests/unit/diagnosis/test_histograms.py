"""Percentiles of a stretch of time from a server's cumulative buckets."""

from __future__ import annotations

import pytest

from perfdoctor.diagnosis.measure import measure_all
from perfdoctor.diagnosis.observations import Observations
from perfdoctor.model import Sample, Signal
from tests.factories import facts

EDGES = ("0.1", "0.5", "1.0", "+Inf")


def scrape(at_s: float, *counts: float) -> Sample:
    return Sample(
        at_s=at_s,
        probe="engine.bucket",
        labels={"histogram": "ttft"},
        values=dict(zip(EDGES, counts, strict=True)),
    )


def p95(*samples: Sample) -> Signal:
    return measure_all(Observations(facts(), "complete", [], list(samples)))["engine.ttft.p95"]


def test_only_what_was_added_counts():
    """A thousand slow requests since the server started are history; the window's twenty were fast."""
    found = p95(scrape(19.0, 0, 0, 0, 1000), scrape(59.0, 20, 20, 20, 1020))

    assert (0.05, 20) == (found.value, found.n)
    assert "0 to 0.1 s" in (found.source or "")
    assert (0.0, 0.1) == (found.low, found.high)


def test_the_last_bucket_is_above_and_no_number():
    """A third of the requests beyond the last edge: the p95 is above it, whatever the mean says."""
    found = p95(scrape(19.0, 0, 0, 0, 0), scrape(59.0, 10, 15, 20, 30))

    assert found.value is None
    assert "above 1 s" in (found.missing or "")


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        ((), "no sample"),
        ((scrape(30.0, 1, 1, 1, 1),), "not read twice"),
        ((scrape(19.0, 5, 5, 5, 5), scrape(59.0, 1, 1, 1, 1)), "restarted"),
        ((scrape(19.0, 5, 5, 5, 5), scrape(59.0, 5, 5, 5, 5)), "nothing was added"),
    ],
)
def test_what_cannot_be_told_is_missing(samples, why):
    """One scrape is a total since the start, and a total is never judged."""
    found = p95(*samples)

    assert found.value is None
    assert why in (found.missing or "")
