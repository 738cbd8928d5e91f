"""Which level comes next: played through against servers whose limits are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sweep_cases as cases
from msgspec.structs import replace

from perfdoctor.model import Load, SweepLevel, Trust
from perfdoctor.sweep._knee import find_knee
from perfdoctor.sweep._loads import load_of, times_longer
from perfdoctor.sweep._steps import End, Plan, Step, next_step
from perfdoctor.sweep._within import find_within

Server = Callable[[float, str], dict[str, Any]]


def play(plan: Plan, server: Server) -> tuple[list[SweepLevel], str]:
    """All levels in their order, and why it ended."""
    rows: list[SweepLevel] = []
    while isinstance(step := next_step(plan, rows), Step):
        assert len(rows) < 60
        fields = {"requests_per_s": 1.0} | server(step.level, step.why)
        rows = [replace(r, repeated=r.repeated or r.level == step.level) for r in rows]
        rows.append(cases.row(step.level, **fields, why=step.why))
    return rows, step.reason


def levels(rows: list[SweepLevel]) -> list[float]:
    return [row.level for row in rows]


def slots(c: int) -> Server:
    return lambda level, why: {"requests_per_s": min(level, c) * 20.0}


def within(limit: float) -> Server:
    """Within the SLO up to that load."""
    return lambda level, why: {"slo": "met" if level <= limit else "missed", "slo_met": level <= limit}


def test_doubling_ends_two_levels_after_the_knee():
    """Four at once: eight bring nothing more, and sixteen neither."""
    rows, reason = play(Plan(), slots(4))

    assert [1, 2, 4, 8, 16] == levels(rows)
    assert "knee is passed" in reason and "16 users" in reason


def test_a_dip_is_no_knee():
    """Two at once cost more than they gain, and eight are served best: as seen of llama.cpp."""
    seen = {1: 34.2, 2: 33.0, 4: 39.1, 8: 44.4, 16: 42.1, 32: 43.0}

    rows, _ = play(Plan(), lambda level, why: {"requests_per_s": seen[int(level)]})

    assert [1, 2, 4, 8, 16, 32] == levels(rows)
    assert 8 == find_knee("concurrency", rows).level


def test_doubling_ends_at_its_limit():
    """The last level is the limit itself, no power of two though it is."""
    rows, reason = play(Plan(most=20), slots(1000))

    assert [1, 2, 4, 8, 16, 20] == levels(rows)
    assert "--max-concurrency 20" in reason


def test_a_rate_is_doubled_until_it_is_not_kept_up_with():
    """From a 64th of the highest; of 10/s 60 % are served, and with an SLO only that decides."""
    plan = Plan("rate", most=80.0)
    rows, reason = play(plan, lambda rate, why: {"served_share": min(1.0, 6 / rate)})

    assert [1.25, 2.5, 5, 10] == levels(rows)
    assert "did not keep up with 10/s" in reason
    assert 80 == play(plan, lambda rate, why: {"served_share": 1.0})[0][-1].level
    assert "--max-rate 80 is" in play(plan, lambda rate, why: {"served_share": 1.0})[1]
    assert [80, 60, 70, 75] == levels(play(Plan("rate", most=80.0, has_slo=True), within(76))[0])[6:]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 11, 23, 37])
def test_bisection_finds_the_highest_number_of_users(limit: int):
    """To the user, below 40; the next higher one was seen to miss it."""
    rows, _ = play(Plan(has_slo=True), within(limit))
    found = find_within("concurrency", rows)

    assert ("found", limit, limit + 1) == (found.status, found.level, found.missed_at)
    assert len(rows) <= 13


def test_bisection_of_rates_ends_at_a_tenth():
    """Three significant digits, and the two ends within 10 %."""
    rows, _ = play(Plan("rate", (1.0, 2.0, 5.0), has_slo=True), within(3.3))
    found = find_within("rate", rows)

    assert [1, 2, 5, 3.5, 2.75, 3.12, 3.31] == levels(rows)
    assert (3.12, 3.31) == (found.level, found.missed_at)


def test_a_lowest_level_that_misses_is_bisected_downwards():
    """A list may begin too high; from one user there is nowhere to go."""
    rows, _ = play(Plan(levels=(8.0, 16.0), has_slo=True), within(3))
    assert [8, 16, 4, 2, 3] == levels(rows)

    rows, _ = play(Plan(has_slo=True), within(0))
    assert ([1], "none", None) == (
        levels(rows),
        find_within("concurrency", rows).status,
        find_within("concurrency", rows).level,
    )


def test_all_within_is_not_found_but_at_least():
    """What was not tried may be within it too."""
    rows, _ = play(Plan(levels=(1.0, 2.0), has_slo=True), within(99))
    found = find_within("concurrency", rows)

    assert ("not_reached", 2, None) == (found.status, found.level, found.missed_at)


def test_what_chance_may_explain_is_run_longer_once_and_then_said():
    """Five users straddle the limit even in the longer run: four are within it, six are not."""

    def server(level: float, why: str) -> dict[str, Any]:
        if level == 5:
            return {"slo": "not_decided", "slo_met": False, "slo_reasons": ("ttft_p95<1s: not decided",)}
        return within(5)(level, why)

    rows, _ = play(Plan(has_slo=True), server)
    found = find_within("concurrency", rows)

    assert [1, 2, 4, 8, 6, 5, 5] == levels(rows)
    assert ("found", 4, (5,), 6) == (found.status, found.level, found.not_decided_at, found.missed_at)
    assert "100 requests do not tell" in found.reason


def test_a_longer_run_may_decide():
    """The doubtful level turns out to be within it, so the search goes on above."""

    def server(level: float, why: str) -> dict[str, Any]:
        if level == 4 and why != "repeated":
            return {"slo": "not_decided", "slo_met": True}
        return within(5)(level, why)

    rows, _ = play(Plan(has_slo=True), server)

    assert [1, 2, 4, 8, 4, 6, 5] == levels(rows)
    assert 5 == find_within("concurrency", rows).level


def test_a_spoilt_level_is_run_again_before_it_ends_the_sweep():
    """Other work on the machine spoils one; a client that is the limit spoils both."""
    hiccup = Trust(status="invalid", reasons=("the load generator used 95 % of a core",))
    once, _ = play(
        Plan(), lambda n, why: slots(4)(n, why) | ({"trust": hiccup} if (n, why) == (2, "doubled") else {})
    )
    twice, reason = play(Plan(), lambda n, why: slots(99)(n, why) | ({"trust": hiccup} if n == 8 else {}))

    assert [1, 2, 2, 4, 8, 16] == levels(once)
    assert [1, 2, 4, 8, 8] == levels(twice)
    assert "cannot be trusted: the load generator used 95 %" in reason


def test_too_few_requests_for_a_p95_are_run_longer():
    """Unless so few were asked for."""

    def few(level: float, why: str) -> dict[str, Any]:
        return slots(1)(level, why) | {"requests": 20 if why == "repeated" else 19}

    assert [1, 1, 2, 2, 4, 4] == levels(play(Plan(), few)[0])
    assert [1, 2, 4] == levels(play(Plan(counted=True), few)[0])


@pytest.mark.parametrize("plan", [Plan(), Plan(levels=(1.0, 2.0, 4.0)), Plan(has_slo=True)])
def test_a_level_that_fails_or_is_interrupted_is_the_last(plan: Plan):
    """Nobody drives a dead server harder."""
    died, reason = play(
        plan, lambda n, why: {"error": "it died"} if n == 2 else slots(9)(n, why) | within(99)(n, why)
    )
    stopped, ended = play(plan, lambda n, why: {"state": "interrupted"} if n == 2 else slots(9)(n, why))

    assert ([1, 2], [1, 2]) == (levels(died), levels(stopped))
    assert ("2 users could not be measured", "interrupted") == (reason, ended)


def test_a_level_stopped_for_its_failures_ends_the_doubling():
    """--max-error-rate: more users would only be refused more."""
    rows, reason = play(
        Plan(), lambda n, why: slots(99)(n, why) | ({"stopped": "30 % failed"} if n == 4 else {})
    )

    assert [1, 2, 4] == levels(rows)
    assert "at 4 users: 30 % failed" == reason


def test_given_levels_are_all_run():
    """Whatever the knee; the order is theirs."""
    rows, reason = play(Plan(levels=(1.0, 2.0, 8.0, 32.0)), slots(1))

    assert ([1, 2, 8, 32], "all levels were run") == (levels(rows), reason)
    assert isinstance(next_step(Plan(levels=(1.0,)), rows), End)


def test_a_slow_server_gets_the_time_for_a_p95():
    """Twenty requests and half as many at the pace of the level before, eight times the length at most."""
    before = cases.row(1, 0.5)

    assert 10 == load_of(Load(), "concurrency", 2, None, False).duration_s
    assert 60 == load_of(Load(), "concurrency", 2, before, False).duration_s
    assert 80 == load_of(Load(), "concurrency", 2, cases.row(1, 0.01), False).duration_s
    assert 10 == load_of(Load(), "rate", 5, before, False).duration_s
    assert (1.08, 8.0) == (times_longer(72, cases.row(1)), times_longer(72, cases.row(1, requests=5)))


def test_every_user_is_warm_before_a_level_counts():
    """One request each; for a rate as long as an answer took before. What was asked for stays."""
    asked = Load(warmup_requests=7, requests=50)
    slow = cases.row(1, e2e_p95_s=3.0)

    assert 8 == load_of(Load(), "concurrency", 8, None, True).warmup_requests
    assert 3 == load_of(Load(arrival="poisson"), "rate", 5, slow, True).warmup_s
    assert (7, 50, None) == tuple(
        getattr(load_of(asked, "concurrency", 8, None, False), f)
        for f in ("warmup_requests", "requests", "duration_s")
    )


def test_the_highest_doubtful_level_is_run_longer_first():
    """A slow server: of a short level nothing can be said, at one user not even of the longer one. What is
    within at four users tells of all below."""

    def server(level: float, why: str) -> dict[str, Any]:
        if level > 5:
            return within(5)(level, why)
        sure = why != "doubled" and level > 1
        return {"slo": "met" if sure else "not_decided", "slo_met": True}

    rows, _ = play(Plan(has_slo=True), server)
    found = find_within("concurrency", rows)

    assert [1, 2, 4, 8, 4, 6, 5] == levels(rows)
    assert ("found", 5, 6) == (found.status, found.level, found.missed_at)


def test_a_level_of_too_few_requests_is_run_again_for_as_long_as_it_takes():
    """Nineteen of twenty are no reason for four times the length, unless an SLO is to be decided."""
    few = cases.row(1, requests=19)

    assert 1.58 == pytest.approx(times_longer(20, few), abs=0.01)
    assert 4.0 == times_longer(20, replace(few, slo="not_decided"))
