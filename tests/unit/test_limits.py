"""The grammar of --slo and --fail-on, and how limits are tested."""

from __future__ import annotations

import pytest

from perfdoctor import limits
from perfdoctor.errors import UsageError
from perfdoctor.model import LoadSummary, Rates, RequestCounts, RequestRecord, Spread, TokenCounts, Trust


def summary(**changes) -> LoadSummary:
    """Nine of ten requests succeeded; ttft p95 is 0.5 s, 2 requests/s, nothing else is known."""
    fields = {
        "run": "r",
        "requests": RequestCounts(total=10, ok=9, failed={"http_500": 1}),
        "trust": Trust(status="valid"),
        "rates": Rates(requests_per_s=2.0),
        "tokens": TokenCounts(),
        "error_latency": Spread(),
    }
    spreads = {name: Spread() for name in ("ttfa", "tpot", "gap", "e2e", "e2e_from_schedule")}
    return LoadSummary(**(fields | spreads | {"ttft": Spread(n=10, p95=0.5)} | changes))


def answer(**changes) -> RequestRecord:
    """TTFT 1 s, two more tokens after 1 s each, due 1 s before it was sent."""
    fields = {
        "due_s": 0.0, "sent_s": 1.0, "first_token_s": 2.0, "first_answer_s": 2.0, "last_token_s": 4.0,
        "end_s": 4.0, "token_at_s": (2.0, 3.0, 4.0), "output_tokens": 3,
    }  # fmt: skip
    return RequestRecord(id=1, phase="steady", **(fields | changes))


@pytest.mark.parametrize(
    ("text", "metric", "comparison", "limit"),
    [
        ("ttft_p95<500ms", "ttft_p95", "<", 0.5),
        ("tpot_p99 <= 50 ms", "tpot_p99", "<=", 0.05),
        ("e2e_mean<3s", "e2e_mean", "<", 3.0),
        ("e2e_with_failures_p90<2m", "e2e_with_failures_p90", "<", 120.0),
        ("goodput>2/s", "goodput", ">", 2.0),
        ("good_share>=0.99", "good_share", ">=", 0.99),
        ("error_rate<1%", "error_rate", "<", 0.01),
        ("error_rate=0", "error_rate", "=", 0.0),
        ("requests_per_s>10", "requests_per_s", ">", 10.0),
        ("user_tokens_per_s_p50>20", "user_tokens_per_s_p50", ">", 20.0),
        ("in_flight_max<=8", "in_flight_max", "<=", 8.0),
        ("trust=valid", "trust", "=", "valid"),
    ],
)
def test_a_limit_is_a_name_a_comparison_and_a_value(text, metric, comparison, limit):
    """In seconds, as a share, as a plain number, or as a word."""
    (found,) = limits.parse(text)

    assert (text, metric, comparison, limit) == (found.text, found.metric, found.comparison, found.limit)


def test_terms_stand_beside_each_other():
    """Separated by commas, with or without a space."""
    assert ["ttft_p95<1s", "error_rate<1%"] == [t.text for t in limits.parse("ttft_p95<1s, error_rate<1%")]


@pytest.mark.parametrize(
    "text",
    [
        "", "ttft_p95", "ttft_p95<", "ttft_p95<500ms,", "ttft_p95<500ms;tpot_p95<1s", "ttft_p95=<1s",
        "ttft_p95<500", "ttft_p95<5%", "ttft_p95<-5ms", "ttft_p95<nan", "ttft_p95<5ms/s", "e2e_mean<fast",
        "error_rate<5", "error_rate<-1%", "error_rate<nan", "error_rate<1/s", "error_rate<101%",
        "goodput>inf", "goodput>5%", "in_flight_max<5/s", "requests_per_s>1s",
        "trust>invalid", "trust=good", "trust<degraded",
    ],
)  # fmt: skip
def test_what_is_no_limit_is_refused_with_an_example(text):
    """Before anything is measured; a bare number for a time could be seconds or milliseconds."""
    with pytest.raises(UsageError) as refused:
        limits.parse(text)

    assert refused.value.do


@pytest.mark.parametrize(
    ("text", "near"),
    [("ttft_p59<1s", "ttft_p95"), ("tpto_p95<1s", "tpot_p95"), ("errorrate<1%", "error_rate"),
     ("TTFT_p95<1s", None), ("ttft_p97<1s", "ttft_p9")],
)  # fmt: skip
def test_a_wrong_name_is_answered_with_the_nearest(text, near):
    """A typing error costs one look, not a search in the documentation."""
    with pytest.raises(UsageError) as refused:
        limits.parse(text)

    assert near is None or near in refused.value.why


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("ttft_p95<0.5s", False), ("ttft_p95<=0.5s", True), ("ttft_p95>0.5s", False),
        ("ttft_p95>=0.5s", True), ("ttft_p95=500ms", True),
        ("requests_per_s>1.9", True), ("requests_per_s>2", False),
        ("error_rate<10%", False), ("error_rate<=10%", True),
        ("trust=valid", True), ("trust=invalid", False),
        ("tpot_p95<1h", None), ("ttft_p99<1h", None), ("itl_p50<1h", None), ("goodput>0", None),
        ("sent_per_s>0", None), ("in_flight_max<9", None),
    ],
)  # fmt: skip
def test_a_limit_is_met_missed_or_without_a_value(text, met):
    """What was not measured is neither."""
    (limit,) = limits.parse(text)

    assert met == limits.test(limit, summary()).met


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("goodput>1", "SLO"), ("error_rate<1%", "no request ended"), ("sent_per_s>1", "closed loop"),
        ("output_tokens_per_s>1", "no tokens were counted"), ("itl_p50<1s", "each chunk"),
        ("tpot_p50<1s", "no request has one"), ("ttft_p99<1s", "100 values, there are 4"),
        ("e2e_with_failures_p95<1s", "among the failed"), ("ttft_p50<1s", None),
    ],
)  # fmt: skip
def test_a_limit_without_a_value_says_why(text, why):
    """Whoever's build fails by it must learn what to change."""
    spreads = {"ttft": Spread(n=4, p50=1.0), "e2e_with_failures": Spread(n=9, p50=1.0)}
    run = summary(requests=RequestCounts(total=1, censored=1), rates=Rates(start_s=0.0), **spreads)
    (limit,) = limits.parse(text)

    missing = limits.test(limit, run).missing

    assert (missing is None) == (why is None) and (why or "") in (missing or "")


def test_no_window_has_no_rate():
    """The users were never all busy: not even requests a second are known."""
    (limit,) = limits.parse("output_tokens_per_s>1")

    assert "at no time the one asked for" in (limits.test(limit, summary(rates=Rates())).missing or "")


def test_no_request_ended_means_no_error_rate():
    """0 of 0 is not 0 %."""
    (limit,) = limits.parse("error_rate<1%")

    assert limits.test(limit, summary(requests=RequestCounts(total=3, censored=3))).value is None


@pytest.mark.parametrize("name", limits.known_names())
def test_every_known_name_can_be_asked_for(name):
    """A name in the list that no summary answers would be a limit that is never met."""
    full = Spread(n=1, mean=1, min=1, p50=1, p90=1, p95=1, p99=1, max=1)
    spreads = {
        field: full for field in LoadSummary.__struct_fields__
        if field in limits._DURATIONS or field == "user_tokens_per_s"
    }  # fmt: skip
    rates = Rates(**dict.fromkeys(limits._RATES, 1))

    found = limits.value_of(name, summary(rates=rates, **spreads))

    assert (name in ("goodput", "good_share")) == (found is None)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("ttft_p95<1001ms", True), ("ttft_p95<1s", False), ("tpot_p95<=1s", True), ("tpot_p95<0.9s", False),
        ("e2e_mean<3s", False), ("e2e_from_schedule_p99<=4s", True), ("ttft_from_schedule_p99<2s", False),
        ("user_tokens_per_s_p50>=1", True), ("user_tokens_per_s_p50>1", False),
        ("ttft_min<1ms", True), ("error_rate<1%,goodput>5,trust=valid", True), ("itl_p95<1ms", True),
    ],
)  # fmt: skip
def test_a_good_request_meets_what_can_be_asked_of_one(text, good):
    """A percentile's limit is asked of each; rates, shares and a least value are not."""
    assert good == limits.is_good(answer(), limits.parse(text))


def test_a_request_without_the_quantity_meets_its_limit():
    """One token has no pace: that is no fault."""
    one = answer(token_at_s=(2.0,), last_token_s=2.0, output_tokens=1)

    assert limits.is_good(one, limits.parse("tpot_p95<1ms,e2e_p95<2s"))


def test_a_first_token_that_never_came_is_not_good():
    """A finished stream without one, or with reasoning alone, is no answer in time."""
    empty = answer(first_token_s=None, first_answer_s=None, last_token_s=None, token_at_s=(), output_tokens=0)
    reasoned = answer(first_answer_s=None)

    assert not limits.is_good(empty, limits.parse("ttft_p95<9s"))
    assert not limits.is_good(reasoned, limits.parse("ttfa_p95<9s"))
    assert limits.is_good(empty, limits.parse("e2e_p95<9s,tpot_p95<1ms"))


def test_failed_and_open_requests_are_not_good():
    """However fast they were."""
    assert not limits.is_good(answer(outcome="truncated"), limits.parse("ttft_p95<9s"))
    assert not limits.is_good(answer(censored=True), limits.parse("ttft_p95<9s"))
