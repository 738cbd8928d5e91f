"""Cumulative histograms: what two readings add, and in which bucket a percentile lies."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdoctor.buckets import Between, gained, percentile


def test_two_readings_give_what_came_between():
    """By edge as a number; a bucket that is new, or has no number, counts from nothing."""
    found = gained({"0.5": 3.0, "+Inf": None}, {"+Inf": 9.0, "0.1": 1.0, "0.5": 5.0})

    assert {0.1: 1.0, 0.5: 2.0, math.inf: 9.0} == found
    assert [0.1, 0.5, math.inf] == list(found)


@pytest.mark.parametrize(
    ("p", "low_s", "high_s"), [(0.5, 0.0, 0.1), (0.51, 0.1, 0.5), (0.9, 0.1, 0.5), (0.95, 0.5, math.inf)]
)
def test_a_percentile_is_as_wide_as_its_bucket(p, low_s, high_s):
    """Ten observations, five of them up to 0.1 s and nine up to 0.5 s."""
    assert Between(low_s, high_s, 10) == percentile({0.1: 5.0, 0.5: 9.0, math.inf: 10.0}, p)


@given(values=st.lists(st.floats(0, 2, allow_nan=False), min_size=1), p=st.floats(0.01, 1))
def test_the_true_percentile_lies_in_the_bucket(values, p):
    """Whatever was observed: above the lower edge, or in the first bucket, and at most at the upper edge."""
    edges = (0.1, 0.5, 1.0, math.inf)
    added = {edge: float(sum(v <= edge for v in values)) for edge in edges}
    exact = sorted(values)[max(1, math.ceil(p * len(values))) - 1]

    found = percentile(added, p)

    assert exact <= found.high_s
    assert exact > found.low_s or found.low_s == 0
