"""Limits on a change: the grammar, and both sides of each."""

from __future__ import annotations

import pytest

from perfdoctor.compare import limits
from perfdoctor.errors import UsageError
from perfdoctor.model import ComparedMetric


def decided(text: str, ratio: float | None, interval: tuple[float, float] | None) -> bool | None:
    (limit,) = limits.parse(text)
    row = ComparedMetric(metric=limit.metric, ratio=ratio, interval=interval, reason="too few")
    return limits.decide(limit, {limit.metric: row}).crossed


@pytest.mark.parametrize(
    ("text", "ratio", "interval", "crossed"),
    [
        ("ttft_p95>+10%", 1.11, (1.01, 1.2), True),
        ("ttft_p95>+10%", 1.09, (1.01, 1.2), False),  # not past it
        ("ttft_p95>+10%", 1.10, (1.01, 1.2), False),  # at it
        ("ttft_p95>+10%", 1.2, (0.99, 1.5), False),  # past it, and may be chance
        ("ttft_p95>+10%", 1.2, None, None),  # past it, and nobody knows
        ("ttft_p95>+10%", 1.05, None, False),
        ("ttft_p95>+10%", None, None, None),
        ("ttft_p95>+10%", 0.5, (0.4, 0.6), False),  # better
        ("requests_per_s<-5%", 0.94, (0.9, 0.99), True),
        ("requests_per_s<-5%", 0.96, (0.9, 0.99), False),
        ("requests_per_s < -5 %", 0.94, (0.9, 1.01), False),
        ("error_rate>+1%", 0.02, (0.005, 0.04), True),  # points
        ("error_rate>+1%", 0.005, (0.001, 0.01), False),
        ("e2e_mean>+0%", 1.001, (1.0005, 1.002), True),
    ],
)
def test_a_limit_needs_a_change_past_it_that_is_no_chance(text, ratio, interval, crossed):
    """The interval must leave out that nothing changed, wherever the limit lies in it."""
    assert decided(text, ratio, interval) is crossed


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("ttft_p95", "no limit of a change"),
        ("ttft_p95>10%", "no limit of a change"),
        ("ttft_p95>+10ms", "no limit of a change"),
        ("ttft_p95>=+10%", "no limit of a change"),
        ("ttft_p95>+1e999%", "no limit of a change"),
        ("", "no limit of a change"),
        ("ttft_p95>-10%", "crossed by runs that are equal"),
        ("requests_per_s<+5%", "crossed by runs that are equal"),
        ("ttft_p96>+10%", "'ttft_p96' is no number that is compared"),
        ("e2e_max>+10%", "'e2e_max' is no number that is compared"),  # one value has no interval
        ("ttft_p95>+10%,", "no limit of a change"),
    ],
)
def test_what_is_no_limit_is_named(text: str, phrase: str):
    """With an example of one that is."""
    with pytest.raises(UsageError) as caught:
        limits.parse(text)

    assert phrase in caught.value.what
    assert limits.EXAMPLE in caught.value.do


def test_several_limits_stand_beside_each_other():
    """Of the help's example."""
    first, second = limits.parse(limits.EXAMPLE)

    assert ("ttft_p95", ">", 0.1) == (first.metric, first.comparison, first.limit)
    assert ("requests_per_s", "<", -0.05) == (second.metric, second.comparison, second.limit)
