"""The schedule of an open loop is the process that was asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.schedule import Rate, due_times, plan
from perfdoctor.loadgen.stage import Share
from perfdoctor.model import Load

N = 20_000
KS_999 = 1.95  # Kolmogorov-Smirnov critical value times sqrt(n), at 0.1 %


def load(arrival="poisson", rate=50.0, **more):
    return Load(arrival=arrival, rate=rate, **more)


def cv(due_s):
    gaps = np.diff(due_s)
    return gaps.std() / gaps.mean()


def dispersion(due_s, window_s):
    """Variance over mean of the arrivals in equal windows."""
    counts = np.bincount((due_s / window_s).astype(int))[:-1]
    return counts.var() / counts.mean()


def ks(values, cdf):
    """Distance of a sample from a distribution."""
    ordered = np.sort(values)
    theory, n = cdf(ordered), len(ordered)
    return max(np.max(np.arange(1, n + 1) / n - theory), np.max(theory - np.arange(n) / n))


def test_constant_is_constant():
    """inference-perf's is not: its gaps had a CV of 1."""
    due_s = due_times(load("constant", rate=8.0, requests=100))

    assert 0.0 == due_s[0]
    assert np.allclose(np.diff(due_s), 0.125, rtol=0, atol=1e-12)


def test_poisson_gaps_are_exponential():
    """Their CV and the dispersion of counts are 1, and no arrival sits on a round second."""
    due_s = due_times(load(requests=N))

    assert abs(cv(due_s) - 1) < 0.03
    assert abs(dispersion(due_s, 1.0) - 1) < 0.25
    assert ks(np.diff(due_s), lambda x: 1 - np.exp(-50 * x)) < KS_999 / math.sqrt(N)
    assert np.mean(due_s % 1 == 0) == 0


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gamma_has_the_asked_burstiness(burstiness):
    """As vLLM means it: the shape of the gaps, whose CV is 1/sqrt(shape); the rate stays."""
    due_s = due_times(load("gamma", burstiness=burstiness, requests=N))

    assert abs(cv(due_s) * math.sqrt(burstiness) - 1) < 0.05
    assert abs(N / due_s[-1] / 50 - 1) < 0.05


def test_gamma_of_burstiness_one_is_poisson():
    """The same numbers, not only the same kind."""
    assert np.array_equal(due_times(load(requests=500)), due_times(load("gamma", requests=500)))


def test_a_seed_repeats_and_another_does_not():
    """One generator, seeded by the load."""
    first = due_times(load(requests=100, seed=7))

    assert np.array_equal(first, due_times(load(requests=100, seed=7)))
    assert not np.array_equal(first, due_times(load(requests=100, seed=8)))


def test_a_longer_load_begins_like_the_shorter_one():
    """However many blocks were drawn."""
    assert np.array_equal(due_times(load(requests=9_000))[:3_000], due_times(load(requests=3_000)))


@given(workers=st.integers(1, 12), requests=st.integers(0, 300))
def test_slices_of_all_workers_are_the_whole_schedule(workers, requests):
    """Each sends every w-th arrival; together the process is what it was, and the counts add up."""
    due_s = due_times(load(requests=requests))
    slices = [due_s[k::workers] for k in range(workers)]

    assert np.array_equal(due_s, np.sort(np.concatenate(slices)))
    assert [len(s) for s in slices] == [Share(k, workers).of(requests) for k in range(workers)]


def test_by_time_by_count_and_by_both():
    """Whichever comes first."""
    by_time = due_times(load("constant", rate=10.0, duration_s=2.0))

    assert 20 == len(by_time) and by_time[-1] < 2.0
    assert 7 == len(due_times(load("constant", rate=10.0, duration_s=2.0, requests=7)))
    assert 20 == len(due_times(load("constant", rate=10.0, duration_s=2.0, requests=700)))


RAMPS = {
    "linear": ((0.0, 0.0), (10.0, 20.0)),
    "down": ((0.0, 20.0), (10.0, 0.0)),
    "steps": ((0.0, 2.0), (5.0, 2.0), (5.0, 18.0), (10.0, 18.0)),
    "hold": ((2.0, 10.0), (8.0, 10.0)),
}


@pytest.mark.parametrize("corners", RAMPS.values(), ids=RAMPS)
def test_a_ramp_sends_its_integral(corners):
    """100 requests in 10 s for each of these, at any moment as many as the integral says."""
    due_s = due_times(load("constant", rate=None, ramp=corners, duration_s=10.0))

    assert 99 <= len(due_s) <= 101
    at, rate = zip(*corners, strict=True)
    grid = np.linspace(0, 10, 100_001)
    integral = np.cumsum(np.interp(grid, at, rate)) * 1e-4
    sent = np.searchsorted(due_s, grid, side="right")
    assert np.max(np.abs(sent - integral)) <= 1.01


def test_a_ramp_ends_at_its_last_corner():
    """Unless a time or a number says otherwise; then the last rate goes on."""
    ramp = RAMPS["steps"]

    assert due_times(load("constant", rate=None, ramp=ramp))[-1] < 10.0
    longer = due_times(load("constant", rate=None, ramp=ramp, duration_s=20.0))
    assert abs(np.sum(longer >= 10.0) - 180) <= 1


def test_a_ramped_poisson_process_is_poisson_after_rescaling():
    """Time rescaling: mapped back through the integral, the gaps are exponential with mean 1."""
    due_s = due_times(load(rate=None, ramp=((0.0, 10.0), (100.0, 190.0))))

    units = 10 * due_s + 0.9 * due_s**2
    assert ks(np.diff(units), lambda x: 1 - np.exp(-x)) < KS_999 / math.sqrt(len(due_s))


def test_a_rate_that_falls_to_zero_ends_the_schedule():
    """What the integral never reaches is never due."""
    due_s = due_times(load("constant", rate=None, ramp=((0.0, 10.0), (1.0, 0.0)), requests=50))

    assert 5 <= len(due_s) <= 6
    assert due_s[-1] <= 1.0


@given(
    corners=st.lists(
        st.tuples(st.floats(0, 50), st.floats(0, 100)), min_size=1, max_size=6, unique_by=lambda c: c[0]
    ).map(lambda c: tuple(sorted(c)))
)
def test_instants_ascend_whatever_the_ramp(corners):
    """And are finite and not negative."""
    instants = Rate(corners).instants(np.linspace(0, 40, 161))

    assert np.all(np.isfinite(instants)) and np.all(instants >= 0)
    assert np.all(np.diff(instants) >= -1e-9)


def test_a_replay_keeps_the_recorded_gaps():
    """From its first request on, faster by the speed."""
    schedule = plan(Load(arrival="replay", replay_speed=2.0), recorded_s=(100.0, 101.0, 105.0))

    assert [0.0, 0.5, 2.5] == schedule.due_s.tolist()
    assert [0.0, 0.5] == plan(Load(arrival="replay", requests=2), 0, 0, (0.0, 0.5, 9.0)).due_s.tolist()


def test_a_lead_comes_before_what_was_asked_for():
    """By number or by time, whichever is longer; the asked number and time count from its end."""
    by_count = plan(load("constant", rate=10.0, requests=20), lead_requests=5)
    by_time = plan(load("constant", rate=10.0, duration_s=2.0), lead_requests=5, lead_s=1.0)

    assert (25, 5, 0.5) == (len(by_count.due_s), by_count.lead, by_count.steady_s)
    assert (30, 10, 1.0) == (len(by_time.due_s), by_time.lead, by_time.steady_s)


def test_a_ramp_begins_after_its_lead():
    """Which has the ramp's first rate."""
    schedule = plan(load("constant", rate=None, ramp=((0.0, 2.0), (10.0, 18.0))), lead_s=5.0)

    assert 10 == schedule.lead
    assert abs(len(schedule.due_s) - 110) <= 1


@pytest.mark.parametrize(
    "orders",
    [
        {"rate": None, "requests": 5},
        {"rate": 0.0, "requests": 5},
        {"rate": -1.0, "requests": 5},
        {"rate": math.nan, "requests": 5},
        {"rate": math.inf, "requests": 5},
        {"ramp": ((0.0, 1.0), (5.0, -1.0)), "requests": 5},
        {"ramp": ((5.0, 1.0), (0.0, 2.0)), "requests": 5},
        {"arrival": "gamma", "burstiness": 0.0, "requests": 5},
        {"arrival": "replay", "replay_speed": 0.0},
        {},
        {"rate": 1e9, "duration_s": 9.0},
    ],
    ids=str,
)
def test_what_cannot_be_scheduled_is_a_usage_error(orders):
    """No rate, no end, no time that goes backwards, nor more requests than memory holds."""
    with pytest.raises(UsageError) as raised:
        due_times(load(**orders))

    assert raised.value.do
