"""Percentiles and their intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdoctor import stats


@pytest.mark.parametrize(("p", "expected"), [(0.5, 2), (0.51, 3), (0.75, 3), (0.76, 4), (1.0, 4), (0.0, 1)])
def test_percentile_is_a_value_someone_had(p: float, expected: int):
    """Nearest rank on four values: both sides of each rank's edge."""
    assert expected == stats.percentile([4, 1, 3, 2], p)


def test_nothing_has_no_percentile():
    """Empty is None, never 0."""
    assert stats.percentile([], 0.5) is None
    assert stats.mean([]) is None
    assert stats.spread([]).p50 is None


def test_p99_is_withheld_below_a_hundred_values():
    """99 values have no p99; 100 have."""
    assert stats.spread([1.0] * 99).p99 is None
    assert 1.0 == stats.spread([1.0] * 100).p99


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200), st.floats(0.01, 1))
def test_percentile_covers_its_share(values: list[float], p: float):
    """At least share p of the values lie at or below the percentile."""
    found = stats.percentile(values, p)

    assert found in values
    assert sum(v <= found for v in values) >= p * len(values) - 1e-9


def test_interval_contains_the_percentile_and_needs_ten_values():
    """The order-statistic interval brackets the point; nine values have none."""
    values = [float(n) for n in range(100)]

    low, high = stats.percentile_interval(values, 0.5)

    assert low <= stats.percentile(values, 0.5) <= high
    assert (39.0, 59.0) == (low, high)
    assert stats.percentile_interval(values[:9], 0.5) is None


def test_a_spread_agrees_with_the_percentiles_one_by_one():
    """One sort for all of them, and no other value."""
    values = [float(n * 7919 % 1000) for n in range(1000)]
    found = stats.spread(values)

    for name, p in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)):
        assert stats.percentile(values, p) == getattr(found, name)
        assert stats.percentile_interval(values, p) == found.intervals[name]
    assert (1000, 0.0, 999.0, 499.5) == (found.n, found.min, found.max, found.mean)


@pytest.mark.parametrize(("name", "enough"), [("p50", 10), ("p90", 35), ("p95", 73), ("p99", 381)])
def test_an_interval_whose_end_would_lie_outside_the_sample_is_withheld(name: str, enough: int):
    """The largest of a hundred values is below the p99 in one sample of three: no bound."""
    assert name in stats.spread([1.0] * enough).intervals
    assert name not in stats.spread([1.0] * (enough - 1)).intervals


@pytest.mark.parametrize("n", [40, 80, 400])
@pytest.mark.parametrize("p", [0.5, 0.9, 0.95, 0.99])
def test_intervals_hold_the_percentile_as_often_as_they_say(n: int, p: float):
    """By the binomial distribution of the rank itself: no less than 94 %, wherever one is given."""
    found = stats.percentile_interval([float(rank) for rank in range(1, n + 1)], p)

    if found is None:
        assert (n, p) in {(40, 0.95), (40, 0.99), (80, 0.99)}
        return
    low, high = (int(rank) for rank in found)
    chances = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(low, high)]
    assert 0.94 < math.fsum(chances) < 0.99
