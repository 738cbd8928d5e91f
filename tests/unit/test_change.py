"""Ratios and their intervals: arithmetic by hand, and how often they err on data drawn with a known truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from perfdoctor import change
from perfdoctor.change import Change

TRUE_15 = 1.15
NOISE = 0.05  # standard deviation of one run's logarithm: what repeated runs on one machine differ by


def draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def runs(rng: np.random.Generator, n: int, factor: float = 1.0, tails: bool = False) -> list[float]:
    """Values of n runs around `factor`; with `tails` some are far off, as when another job ran."""
    noise = rng.standard_t(3, n) / math.sqrt(3) if tails else rng.normal(0, 1, n)
    return [float(v) for v in factor * np.exp(NOISE * noise)]


def pair_ratios(
    rng: np.random.Generator, n: int, factor: float = 1.0, tails: bool = False, drift: float = 0.0
) -> list[float]:
    """The machine slows down by `drift` a run; the order within pairs alternates."""
    values = runs(rng, 2 * n, tails=tails)
    at = [v * (1 + drift) ** i for i, v in enumerate(values)]
    return [
        factor * (at[2 * i + 1] / at[2 * i] if i % 2 == 0 else at[2 * i] / at[2 * i + 1]) for i in range(n)
    ]


def requests(rng: np.random.Generator, n: int, alike: float = 0.0, factor: float = 1.0) -> list[float]:
    """Latencies of one run, each like the one before it by that correlation."""
    steps = rng.normal(0, math.sqrt(1 - alike**2), n)
    level = [float(rng.normal())]
    for step in steps[1:]:
        level.append(alike * level[-1] + float(step))
    return [factor * math.exp(0.3 * value) for value in level]


def share(tries: int, of: Callable[[], Change | None]) -> float:
    """How often a difference is found."""
    return sum(bool((found := of()) and found.significant) for _ in range(tries)) / tries


# ------------------------------------------------------------------------------ pairs


def test_pairs_that_agree_give_their_ratio():
    """No spread, no interval around it."""
    found = change.of_pairs([1.5, 1.5, 1.5])

    assert found
    assert [1.5, 1.5, 1.5] == pytest.approx([found.ratio, found.low, found.high])
    assert found.significant


def test_one_bad_pair_hardly_moves_the_ratio():
    """A tenth as fast in one of seven: the others' 1.2 stands."""
    found = change.of_pairs([1.2, 1.21, 1.19, 1.2, 1.22, 1.18, 0.12])

    assert found
    assert 1.2 == pytest.approx(found.ratio, rel=0.02)


@pytest.mark.parametrize("ratios", [[], [1.1], [1.1, 1.2], [1.1, 0.0, 1.2]])
def test_too_few_pairs_have_no_interval(ratios: list[float]):
    """Two have no spread worth the name, and 0 no logarithm."""
    assert change.of_pairs(ratios) is None


@pytest.mark.parametrize("n", [5, 7, 10])
@pytest.mark.parametrize("tails", [False, True])
def test_equal_sides_are_rarely_found_to_differ(n: int, tails: bool):
    """In at most 6 % of draws by the interval alone, 3 % with the noise floor that verify asks too."""
    rng = draws(n)

    def with_floor() -> Change | None:
        found = change.of_pairs(pair_ratios(rng, n, tails=tails))
        floor = change.noise_floor(pair_ratios(rng, n, tails=tails), n)
        assert found and floor
        return found if max(found.ratio, 1 / found.ratio) > floor else None

    assert share(300, lambda: change.of_pairs(pair_ratios(rng, n, tails=tails))) <= 0.06
    assert share(300, with_floor) <= 0.03


@pytest.mark.parametrize(("n", "least"), [(5, 0.75), (7, 0.90), (10, 0.97)])
def test_fifteen_percent_is_found(n: int, least: float):
    """Past the noise floor too, where single runs differ by 5 %."""
    rng = draws(n)
    found = 0
    for _ in range(200):
        one = change.of_pairs(pair_ratios(rng, n, TRUE_15))
        floor = change.noise_floor(pair_ratios(rng, n), n)
        assert one and floor
        found += one.low > 1 and one.ratio > floor

    assert found / 200 >= least


def test_drift_does_not_look_like_an_effect():
    """Each run 2 % slower than the one before: turning the order round takes it out."""
    rng = draws(4)

    assert share(300, lambda: change.of_pairs(pair_ratios(rng, 6, drift=0.02))) <= 0.06


def test_the_interval_holds_the_truth():
    """In at least 94 % of draws with a true 15 %."""
    rng = draws(5)
    found = [change.of_pairs(pair_ratios(rng, 6, TRUE_15)) for _ in range(300)]

    assert sum(f is not None and f.low <= TRUE_15 <= f.high for f in found) >= 0.94 * 300


def test_noise_floor_by_hand():
    """Equal sides, 2 % apart either way, five times: t(5) = 2.571 times their spread over the root of 5."""
    ratios = [1.02, 1 / 1.02, 1.02, 1 / 1.02, 1.02]

    assert math.exp(2.571 * math.log(1.02) / math.sqrt(5)) == pytest.approx(change.noise_floor(ratios, 5))
    assert change.noise_floor(ratios[:2], 5) is None


# ------------------------------------------------------------------------------ several runs


def test_runs_by_hand():
    """Medians aside: geometric means 1 and 2, no spread."""
    found = change.of_runs([1.0, 1.0], [2.0, 2.0])

    assert found == Change(2.0, 2.0, 2.0)


@pytest.mark.parametrize(("before", "after"), [([], [1.0, 1.0]), ([1.0], [2.0]), ([0.0, 1.0], [1.0, 2.0])])
def test_runs_without_a_spread(before: list[float], after: list[float]):
    """One of each has none."""
    assert change.of_runs(before, after) is None


@pytest.mark.parametrize(("n", "m"), [(1, 3), (2, 2), (3, 3), (5, 5)])
def test_equal_runs_are_rarely_found_to_differ(n: int, m: int):
    """5 % of the time by its making; 7 % allows for the draw."""
    rng = draws(n + m)

    assert share(1000, lambda: change.of_runs(runs(rng, n), runs(rng, m))) <= 0.07


def test_two_runs_a_side_find_what_is_large():
    """A fifth of the time, which a test that wants three runs would refuse to see."""
    rng = draws(2)

    assert share(300, lambda: change.of_runs(runs(rng, 2), runs(rng, 2, 0.22))) >= 0.97


# ------------------------------------------------------------------------------ requests of one run each


@pytest.mark.parametrize("alike", [0.0, 0.5])
@pytest.mark.parametrize(
    "of",
    [
        change.of_means,
        lambda a, b: change.of_percentiles(a, b, 0.5),
        lambda a, b: change.of_percentiles(a, b, 0.95),
    ],
    ids=["mean", "p50", "p95"],
)
def test_equal_requests_are_rarely_found_to_differ(of, alike: float):
    """Also where each answer takes about as long as the one before it."""
    rng = draws(7)

    assert share(200, lambda: of(requests(rng, 200, alike), requests(rng, 200, alike))) <= 0.075


def test_a_difference_of_requests_is_found():
    """15 % of a median and of a mean, of 200 requests that vary by a third."""
    rng = draws(8)

    def both() -> Change | None:
        before, after = requests(rng, 200), requests(rng, 200, factor=TRUE_15)
        median, mean = change.of_percentiles(before, after, 0.5), change.of_means(before, after)
        return mean if median and median.significant else None

    assert share(200, both) >= 0.8


def test_too_few_requests_have_no_interval():
    """10 for a median and a mean, 73 for a p95; what takes no time has no ratio."""
    few, enough = [1.0 + i / 100 for i in range(9)], [1.0 + i * 31 % 73 / 100 for i in range(72)]

    assert change.of_means(few, enough) is None
    assert change.of_percentiles(few, enough, 0.5) is None
    assert change.of_percentiles(enough, enough, 0.95) is None
    assert change.of_percentiles([*enough, 2.0], [*enough, 2.0], 0.95)
    assert change.of_percentiles([0.0] * 20, enough, 0.5) is None


def test_rates_by_hand():
    """Two a second against three, without any variation."""
    found = change.of_rates(([1.0] * 20, [0.5] * 20), ([1.0] * 20, [1 / 3] * 20))

    assert found
    assert [1.5, 1.5, 1.5] == pytest.approx([found.ratio, found.low, found.high])


def test_the_same_values_give_the_same_interval():
    """The resampling has a seed of its own."""
    before, after = requests(draws(1), 50), requests(draws(2), 50)

    assert change.of_percentiles(before, after, 0.5) == change.of_percentiles(before, after, 0.5)
    assert change.of_pairs(before[:6]) == change.of_pairs(before[:6])


# ------------------------------------------------------------------------------ shares


def test_shares_by_a_published_example():
    """Newcombe 1998, table II, example a, method 10: 56 of 70 less 48 of 80 is 0.2 (0.0524 to 0.3339)."""
    found = change.of_shares(48, 80, 56, 70)

    assert found
    assert [0.2, 0.0524, 0.3339] == pytest.approx([found.ratio, found.low, found.high], abs=1e-4)
    assert found.significant


def test_no_failures_on_either_side_are_no_change():
    """Zero less zero, and nothing without a request."""
    found = change.of_shares(0, 100, 0, 100)

    assert found and not found.significant
    assert change.of_shares(0, 0, 1, 10) is None
