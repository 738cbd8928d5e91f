"""From samples and requests to drawable lines."""

from __future__ import annotations

import math

from perfdoctor.model import RequestRecord, Sample
from perfdoctor.reports import _series


def record(ident: int, sent_s: float, end_s: float | None, outcome: str = "ok") -> RequestRecord:
    return RequestRecord(id=ident, phase="steady", due_s=sent_s, sent_s=sent_s, end_s=end_s, outcome=outcome)


def test_rates_are_growth_a_second():
    """A counter read every two seconds."""
    assert [(2.0, 5.0), (4.0, 0.0)] == _series.rates([(0.0, 10.0), (2.0, 20.0), (4.0, 20.0)])


def test_a_counter_that_fell_has_no_rate_there():
    """A restarted server is a hole, not a negative rate."""
    assert [(1.0, None), (2.0, 3.0)] == _series.rates([(0.0, 9.0), (1.0, 2.0), (2.0, 5.0)])


def test_a_missing_reading_takes_the_rates_on_both_sides():
    """Nothing is interpolated."""
    assert [(1.0, None), (2.0, None)] == _series.rates([(0.0, 1.0), (1.0, None), (2.0, 5.0)])


def test_two_readings_at_one_instant_have_no_rate():
    """No division by zero."""
    assert [] == _series.rates([(1.0, 1.0), (1.0, 2.0)])


def test_collect_keeps_wanted_metrics_by_label_in_order_of_time():
    """Values that are no number become holes."""
    samples = [
        Sample(at_s=2.0, probe="gpu", labels={"gpu": "0"}, values={"sm_active": math.nan, "util": 1.0}),
        Sample(at_s=1.0, probe="gpu", labels={"gpu": "0"}, values={"sm_active": 0.5}),
        Sample(at_s=1.0, probe="gpu", labels={"gpu": "1"}, values={"sm_active": 0.7}),
    ]

    found = _series.collect(samples, {"gpu.sm_active"})

    assert {("gpu.sm_active", "0"): [(1.0, 0.5), (2.0, None)], ("gpu.sm_active", "1"): [(1.0, 0.7)]} == found


def test_a_long_pause_between_readings_is_a_hole():
    """Nobody knows what happened while the probe slept."""
    points = [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (20.0, 1.0)]

    assert [*points[:3], (2.0, None), points[3]] == _series.with_holes(points)


def test_a_usual_pause_is_bridged():
    """Jitter of the sampler is no hole."""
    points = [(0.0, 1.0), (1.0, 1.0), (2.9, 1.0)]

    assert points == _series.with_holes(points)


def test_thinning_keeps_the_single_peak():
    """One bad reading among 60,000 is what the reader looks for."""
    points = [(i / 100, 1.0) for i in range(60_000)]
    points[31_415] = (314.15, 9.0)

    thinned = _series.thin(points, 300)

    assert (314.15, 9.0) in thinned
    assert len(thinned) <= 600


def test_thinning_keeps_order_and_holes():
    """A bucket without a value breaks the line."""
    points = [(float(i), None if 40 <= i < 60 else float(i)) for i in range(100)]

    thinned = _series.thin(points, 10)

    assert thinned == sorted(thinned, key=lambda p: p[0])
    assert any(y is None for _, y in thinned)


def test_few_points_stay_as_they_are():
    """Thinning never touches what fits."""
    assert [(0.0, 1.0), (1.0, 2.0)] == _series.thin([(0.0, 1.0), (1.0, 2.0)], 10)


def test_lanes_are_as_many_as_requests_open_at_once():
    """A lane is reused as soon as its request is over."""
    records = [record(1, 0, 2), record(2, 1, 3), record(3, 2, 4)]

    assert [(0, 1), (1, 2), (0, 3)] == [(lane, r.id) for lane, r in _series.lanes(records, 9)]


def test_an_open_request_keeps_its_lane_to_the_end():
    """A request without an end lasts until the run's."""
    records = [record(1, 0, None), record(2, 5, 6)]

    assert [0, 1] == [lane for lane, _ in _series.lanes(records, 9)]


def test_in_flight_counts_open_requests():
    """A staircase that returns to zero."""
    steps = _series.in_flight([record(1, 0, 2), record(2, 1, 3)], 9)

    assert [(0, 1), (1, 2), (2, 1), (3, 0)] == [(t, int(v)) for t, v in steps[1::2] if v is not None]


def test_an_even_pick_keeps_the_failures():
    """What went wrong is never thinned away."""
    records = [record(i, i, i + 1, "timeout" if i == 77 else "ok") for i in range(1000)]

    picked = _series.evenly(records, 100)

    assert 100 == len(picked)
    assert 77 in {r.id for r in picked}
