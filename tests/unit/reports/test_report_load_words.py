"""A load test's numbers in words."""

from __future__ import annotations

import msgspec
import pytest
import report_cases as cases

from perfdoctor.model import (
    Arrivals,
    Load,
    Prompts,
    Rates,
    RequestCounts,
    Scenario,
    ServerView,
    SloResult,
    SloTerm,
    Target,
)
from perfdoctor.reports import _load_words as told


def facts(**changes) -> dict[str, str]:
    return dict(told.facts(msgspec.structs.replace(cases.summary(), **changes)))


def test_counts_name_what_there_is():
    """Clean ones are short; each oddity has its number; what was never sent is not also open."""
    clean = RequestCounts(total=200, ok=200)
    odd = RequestCounts(
        total=20, ok=9, failed={"truncated": 2, "http_429": 1}, censored=8, not_sent=5, late=4,
        empty_answers=2, redialled=1,
    )  # fmt: skip

    assert "200 of 200 ok, 0 failed" == told.counted(clean)
    assert (
        "9 of 20 ok, 3 failed: http_429 1, truncated 2, 5 not sent, 3 still open at the end, 4 sent late, "
        "2 answers without a token, 1 sent again on a new connection"
    ) == told.counted(odd)


def test_rates_name_what_there_is():
    """Plain HTTP has no tokens, and a run without a load has no rates; neither is a dash."""
    plain = msgspec.structs.replace(cases.summary(), rates=Rates(requests_per_s=2.5, in_flight_mean=4.0))
    nothing = msgspec.structs.replace(cases.summary(), rates=Rates())

    assert "2.51 requests/s, 120 output tokens/s (peak 131)" == told.rates(cases.summary())
    assert "2.5 requests/s, 4 in flight on average" == told.rates(plain)
    assert told.rates(nothing).startswith("none")


def test_arrivals_say_how_they_were():
    """As asked with numbers, else with the reason."""
    good = Arrivals(
        process="poisson",
        status="as_asked",
        n=99,
        asked_per_s=5.0,
        sent_per_s=4.9,
        gap_cv=1.1,
        late_p99_s=0.002,
    )
    bad = Arrivals(process="constant", status="deviates", reason="half was late")
    few = Arrivals(process="gamma", status="unknown", reason="fewer than 20 scheduled requests")

    assert (
        "poisson, as asked: 4.9/s sent of 5 scheduled, CV of the gaps 1.1, late p99 2 ms"
        == facts(arrivals=good)["Arrivals"]
    )
    assert "constant, deviates: half was late" == facts(arrivals=bad)["Arrivals"]
    assert "gamma, unknown: fewer than 20 scheduled requests" == facts(arrivals=few)["Arrivals"]
    assert "Arrivals" not in facts()


def test_the_servers_view_stands_beside_ours():
    """Means beside means; what it does not export is left out, and a missing view says why."""
    view = ServerView(ttft_mean_s=0.3, queue_mean_s=0.1, output_tokens=1920, output_tokens_here=1918.0)

    assert (
        "mean TTFT 300 ms by its own count, 326 ms here; 100 ms of it queue; 1,920 tokens counted, "
        "1,918 arrived here" == facts(server=view)["Server"]
    )
    assert (
        "missing: its counters were read only once"
        in facts(server=ServerView(missing="its counters were read only once"))["Server"]
    )
    assert "exports none" in facts(server=ServerView())["Server"]
    bars = ServerView(
        percentiles={"ttft_p50_s": (0.25, 0.5), "ttft_p95_s": (2.5, None), "itl_p50_s": (0.0, 1.0)}
    )
    assert (
        "by its histograms ttft p50 250-500 ms, p95 above 2.5 s; itl p50 0 ms to 1 s"
        in facts(server=bars)["Server"]
    )
    doubted = ServerView(output_tokens=9.0, doubts=("it counted 9 tokens, here arrived 99",))
    assert facts(server=doubted)["Server"].endswith("it counted 9 tokens, here arrived 99")


@pytest.mark.parametrize(
    ("met", "expected"),
    [(True, "met; goodput 2 requests/s, 50 % of the requests good"), (False, "missed; goodput"),
     (None, "not decided: a limit has no value here; goodput")],
)  # fmt: skip
def test_an_slo_has_three_answers(met, expected):
    """Nobody passes by measuring nothing."""
    slo = SloResult(text="x", met=met, goodput_per_s=2.0, good_share=0.5)

    assert told.slo_title(slo).startswith(expected)
    assert "met" == told.slo_title(SloResult(text="x", met=True))


@pytest.mark.parametrize(
    ("metric", "value", "shown"),
    [("ttft_p95", 0.25, "250 ms"), ("error_rate", 0.02, "2 %"), ("good_share", 0.5, "50 %"),
     ("requests_per_s", 12.0, "12"), ("user_tokens_per_s_p50", 20.0, "20"), ("trust", "valid", "valid"),
     ("itl_p50", None, "-")],
)  # fmt: skip
def test_a_terms_value_has_its_unit(metric, value, shown):
    """Times as times, shares as percent."""
    term = SloTerm(text=f"{metric}<1", metric=metric, comparison="<", limit=1.0, value=value, met=None)

    assert ((f"{metric}<1", shown, "no value"),) == tuple(told.slo_rows(SloResult(text="x", terms=(term,))))


@pytest.mark.parametrize(
    ("load", "api", "expected"),
    [
        (Load(concurrency=4, prompts=Prompts(output_tokens=8)), "chat", "4 at once, 8 tokens each"),
        (Load(concurrency=4), "http", "4 at once"),
        (Load(arrival="poisson", rate=5.0), "http", "5 requests/s, poisson"),
        (Load(arrival="replay"), "http", "replay"),
    ],
)
def test_the_load_in_a_few_words(load, api, expected):
    """An open loop has no number at once; plain HTTP has no tokens."""
    assert expected == told.shape(Scenario(load=load, target=Target(api=api)))
