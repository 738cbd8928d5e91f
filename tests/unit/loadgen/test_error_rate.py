"""Stopping a load whose requests fail."""

from __future__ import annotations

import random

import pytest

from perfdoctor.loadgen.error_rate import MIN_SAMPLE, ErrorRate


def first_stop(limit: float, outcomes: list[bool]) -> int | None:
    """After how many finished requests the load is stopped; `outcomes` are True for failures."""
    watch = ErrorRate(limit)
    return next((n for n, failed in enumerate(outcomes, 1) if watch.note(failed)), None)


def test_nothing_is_concluded_from_a_few():
    """All fail: stopped as soon as there are enough of them."""
    assert MIN_SAMPLE == first_stop(0.5, [True] * 100)


@pytest.mark.parametrize(("failed", "expected"), [(19, None), (20, 99)])
def test_chance_does_not_stop_a_load(failed, expected):
    """10 % allowed: 19 of 100 may be chance, being 10 + 3 * sqrt(9); 19 of 99 are not."""
    assert expected == first_stop(0.10, [False] * (100 - failed) + [True] * failed)


def test_a_load_at_its_limit_goes_on():
    """1000 requests of which a tenth fail at random, a hundred seeds: hardly ever stopped."""
    draws = [random.Random(seed) for seed in range(100)]
    stops = [first_stop(0.15, [draw.random() < 0.10 for _ in range(1000)]) for draw in draws]

    assert sum(stop is not None for stop in stops) <= 2


def test_a_server_that_breaks_late_is_noticed():
    """A thousand good answers do not hide the bad ones after them."""
    stopped = first_stop(0.2, [False] * 1000 + [True] * 100)

    assert 1033 == stopped


def test_a_long_load_notices_a_small_excess():
    """12 % fail and 10 % are allowed: no hundred requests show it, some thousands do."""
    stopped = first_stop(0.10, ([True] * 3 + [False] * 22) * 400)

    assert 100 < stopped < 5000


def test_no_failure_allowed():
    """The first one stops, once there are enough requests."""
    assert 31 == first_stop(0.0, [False] * 30 + [True])


def test_at_the_end_the_plain_share_counts():
    """Whoever allows 10 % is told about 15 %, though twenty requests prove nothing."""
    watch = ErrorRate(0.10)
    assert [None] * 20 == [watch.note(n < 3) for n in range(20)]

    assert "3 of 20 requests failed, more than the 10 %" in watch.at_end()
    assert None is ErrorRate(0.10).at_end()
