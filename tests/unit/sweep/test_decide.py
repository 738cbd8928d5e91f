"""Whether an SLO is met by more than chance."""

from __future__ import annotations

import math

import pytest

from perfdoctor import limits
from perfdoctor.loadgen.summary import summarise
from perfdoctor.model import LoadSummary, RequestRecord
from perfdoctor.sweep._decide import at_least, at_most, by_count, decide, requests_needed
from tests import factories


def answered(
    fast: int, slow: int = 0, failed: int = 0, slo: str | None = None
) -> tuple[list[RequestRecord], LoadSummary]:
    """Requests with a TTFT of 0.1 s and of 0.9 s."""
    ttft = [0.1] * fast + [0.9] * slow
    good = [factories.request(i, 20.0 + i, ttft_s=at) for i, at in enumerate(ttft)]
    bad = [
        factories.request(1000 + i, 20.0 + i, outcome="http_500", status=500, first_token_s=None)
        for i in range(failed)
    ]
    return good, summarise(factories.facts(), "complete", [*good, *bad], slo=slo)


@pytest.mark.parametrize(("n", "decision"), [(71, "not_decided"), (72, "met")])
def test_so_many_in_time_show_a_p95(n: int, decision: str):
    """0.95^72 is the first below 2.5 %: with a true share of 95 %, so many in time are no chance."""
    assert (0.95**n <= 0.025) == (decision == "met")
    assert decision == by_count(n, n, 0.95)


@pytest.mark.parametrize(
    ("slow", "decision"), [(0, "met"), (1, "not_decided"), (9, "not_decided"), (11, "missed")]
)
def test_a_hundred_requests_of_which_some_are_slow(slow: int, decision: str):
    """Five of a hundred may be slow; eleven are too many for chance, one is too near."""
    records, summary = answered(100 - slow, slow)

    assert decision == decide("ttft_p95<500ms", records, summary)[0]


def test_three_slow_requests_are_enough_to_miss_it():
    """With 95 % in time three in a row would be slow once in 8,000 times."""
    decision, reasons = decide("ttft_p95<500ms", *answered(0, 3))

    assert ("missed", ["ttft_p95<500ms: missed, it is 900 ms"]) == (decision, reasons)


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("ttft_p95<500ms,e2e_mean<1ms", "missed"),  # one is enough
        ("ttft_p95<500ms,itl_p95<10ms", "not_decided"),  # no value
        ("ttft_p50<500ms,requests_per_s>0.1,trust=valid", "met"),
        ("user_tokens_per_s_p50>5", "met"),
        ("user_tokens_per_s_p50>20", "missed"),
        ("error_rate<1%", "met"),  # no failure at all
        ("good_share>90%", "met"),
    ],
)
def test_limits_of_all_kinds(text: str, decision: str):
    """A hundred good answers with a pace of 10 tokens/s."""
    assert decision == decide(text, *answered(100, slo=text))[0]


@pytest.mark.parametrize(("failed", "decision"), [(1, "not_decided"), (12, "missed")])
def test_failures_are_counted_too(failed: int, decision: str):
    """Of about a hundred, one failure may be chance at a limit of 2 %, twelve are none."""
    assert decision == decide("error_rate<2%", *answered(100, failed=failed))[0]


def test_the_binomial_is_exact():
    """Against sums of math.comb."""
    whole = sum(math.comb(20, k) * 0.3**k * 0.7 ** (20 - k) for k in range(5))

    assert whole == pytest.approx(at_most(4, 20, 0.3))
    assert 1 - whole == pytest.approx(at_least(5, 20, 0.3))
    assert (1.0, 0.0, 1.0) == (at_most(20, 20, 0.3), at_most(-1, 20, 0.3), at_least(0, 20, 0.3))


def test_how_many_requests_an_slo_needs():
    """The rarest tail decides; a mean needs none in particular."""
    assert [72, 368, 1] == [
        requests_needed(t) for t in ("ttft_p95<1s", "ttft_p95<1s,tpot_p99<1s", "e2e_mean<1s")
    ]


def test_every_name_of_the_grammar_can_be_decided():
    """None is forgotten, whatever kind of number it is."""
    records, summary = answered(100)
    for name in limits.known_names():
        value = "valid" if name == "trust" else next(v for v in ("1s", "1%", "1") if parses(f"{name}<{v}"))
        decide(f"{name}{'=' if name == 'trust' else '<'}{value}", records, summary)


def parses(text: str) -> bool:
    try:
        return bool(limits.parse(text))
    except limits.UsageError:
        return False
