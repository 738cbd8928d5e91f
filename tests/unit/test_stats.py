"""Percentiles and their intervals."""

from __future__ import annotations

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
