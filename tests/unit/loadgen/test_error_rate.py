"""Stopping a load whose requests fail."""

from __future__ import annotations

from perfdoctor.loadgen.error_rate import MIN_SAMPLE, WINDOW, ErrorRate


def first_stop(limit: float, outcomes: list[bool]) -> int | None:
    """After how many finished requests the load is stopped; `outcomes` are True for failures."""
    watch = ErrorRate(limit)
    return next((n for n, failed in enumerate(outcomes, 1) if watch.note(failed)), None)


def test_exactly_the_limit_goes_on():
    """10 % asked, 10 % failed: not above it. One failure more is."""
    tenth = [True, *[False] * 9] * 10

    assert first_stop(0.10, tenth) is None
    assert first_stop(0.10, [*tenth, True, True]) == 102


def test_nothing_is_concluded_from_a_few():
    """All fail: stopped as soon as there are enough of them."""
    assert MIN_SAMPLE == first_stop(0.5, [True] * 100)


def test_a_server_that_breaks_late_is_noticed():
    """A thousand good answers do not hide the last hundred bad ones."""
    stopped = first_stop(0.5, [False] * 1000 + [True] * WINDOW)

    assert 1000 + WINDOW // 2 + 1 == stopped


def test_one_failure_does_not_cross_a_small_limit():
    """At 1 % one failure in the first twenty requests is no evidence; two in a hundred are."""
    assert first_stop(0.01, [True, *[False] * 500]) is None
    assert first_stop(0.01, [True, True, *[False] * 500]) == 100


def test_no_failure_allowed():
    """The first one stops."""
    assert 3 == first_stop(0.0, [False, False, True])


def test_the_reason_gives_both_numbers():
    """What was counted, and the limit it crossed."""
    watch = ErrorRate(0.25)
    reasons = [watch.note(True) for _ in range(MIN_SAMPLE)]

    assert "20 of the last 20" in reasons[-1] and "25 %" in reasons[-1]
