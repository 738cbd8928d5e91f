"""Rates and counts from hand-made records whose sums fit in the head."""

import pytest

from perfdoctor.loadgen.summary import busy_window, summarise
from perfdoctor.model import Load, RequestRecord, RunFacts, Scenario


def request(sent_s, *tokens_s, end_s=None, output=None, **more):
    """Sent at `sent_s`, a token at each further instant, over with the last."""
    first, last = (tokens_s[0], tokens_s[-1]) if tokens_s else (None, None)
    fields = {
        "id": 1,
        "phase": "steady",
        "due_s": sent_s,
        "sent_s": sent_s,
        "first_token_s": first,
        "first_answer_s": first,
        "last_token_s": last,
        "end_s": end_s if end_s is not None else last,
        "token_at_s": tokens_s,
        "output_tokens": len(tokens_s) if output is None else output,
        "token_source": "usage",
        "finish_reason": "stop",
        "prompt_tokens": 10,
    }
    return RequestRecord(**{**fields, **more})


def summary(records, users=1, state="complete"):
    facts = RunFacts(run="r", scenario=Scenario(load=Load(concurrency=users)))
    return summarise(facts, state, records)


def test_window_starts_with_the_last_user_and_ends_with_the_first_idle_one():
    """Two users, four requests: the fourth leaves when the third has no successor."""
    records = [request(0, 2), request(1, 4), request(2, 6), request(4, 9)]

    assert (1, 6) == busy_window(records, 2)


def test_window_is_the_whole_span_where_the_users_were_never_all_busy():
    """Fewer requests than users; or an answer before the last user's first request."""
    assert (0, 4) == busy_window([request(0, 2), request(1, 4)], 3)
    assert (0, 9) == busy_window([request(0, 1), request(5, 9)], 2)
    assert busy_window([], 2) is None


def test_rates_count_what_lies_in_the_window():
    """Two users from 0 to 4: four requests of 2 s with two tokens each."""
    records = [request(s, s + 1, s + 2) for s in (0, 0, 2, 2)]
    rates = summary(records, users=2).rates

    assert 2.0 == rates.in_flight_mean
    assert 1.0 == rates.requests_per_s
    assert 2.0 == rates.output_tokens_per_s


def test_a_request_across_the_edge_counts_with_its_share():
    """The second user goes on alone for 4 s: half of its last request is outside."""
    records = [request(0, 1, 2, 3, 4), request(0, 2, 4, 6, 8)]

    assert (1 + 0.5) / 4 == summary(records, users=2).rates.requests_per_s


def test_waiting_in_a_queue_is_no_throughput():
    """One answer a second for four users: those still waiting at the end were not served."""
    records = [request(max(0, n - 4), n) for n in range(1, 9)]

    assert 1.0 == summary(records, users=4).rates.requests_per_s


def test_peak_is_the_best_whole_second():
    """Four tokens from 0.5 to under 1.5; a window under one second has no peak."""
    records = [request(0, 0.5, 1.1, 1.2, 1.3, 1.5, 2.6, 4.0)]

    assert 4.0 == summary(records).rates.peak_output_tokens_per_s
    assert summary([request(0, 0.1, 0.2)]).rates.peak_output_tokens_per_s is None


def test_tokens_are_weighted_where_chunks_hold_several():
    """Two chunks with four tokens together: two tokens at each; and the reader is told."""
    result = summary([request(0, 1.0, 2.0, output=4)])

    assert (4, 4, 2.0) == (result.tokens.output, result.tokens.in_window, result.tokens.per_chunk)
    assert any("2.0 per chunk" in note and "TPOT" in note for note in result.notes)


def test_one_token_per_chunk_needs_no_note():
    """End marks and hidden tags are tokens without a chunk: up to a fifth more tokens is no merging."""
    ticks = [float(n) for n in range(1, 21)]

    assert () == summary([request(0, *ticks, output=24)]).notes
    assert 1 == len(summary([request(0, *ticks, output=25)]).notes)


def test_failures_are_counted_by_class_and_left_out_of_latencies():
    """A request that failed fast must not make the server look fast."""
    records = [
        request(0, 1, 2),
        request(2, end_s=2.5, outcome="http_429", error="slow down", output=None, finish_reason=None),
        request(3, 4, end_s=5, outcome="truncated", error="cut", finish_reason=None),
        request(5, 6, end_s=7, outcome="truncated", error="cut again", finish_reason=None),
    ]
    result = summary(records)

    assert (4, 1) == (result.requests.total, result.requests.ok)
    assert {"http_429": 1, "truncated": 2} == result.requests.failed
    assert {"http_429": "slow down", "truncated": "cut"} == result.errors
    assert 1 == result.ttft.n == result.e2e.n
    assert 3 == result.error_latency.n
    assert {"stop": 1} == result.requests.finish_reasons


def test_censored_requests_are_neither_ok_nor_failed():
    """Their tokens were delivered and count; their times are unknown."""
    records = [request(0, 1, 2), request(0, 1, 2, 3, outcome="cancelled", censored=True, finish_reason=None)]
    result = summary(records, users=2)

    assert (2, 1, 1, {}) == (
        result.requests.total, result.requests.ok, result.requests.censored, result.requests.failed,
    )  # fmt: skip
    assert 5 == result.tokens.output
    assert 4 == result.tokens.in_window
    assert any("still open" in note for note in result.notes)


def test_an_answer_without_a_token_is_ok_but_has_no_ttft():
    """The model stopped at once."""
    result = summary([request(0, end_s=1.0, output=0), request(1, 2, 3)])

    assert (2, 1) == (result.requests.ok, result.requests.empty_answers)
    assert 1 == result.ttft.n


def test_only_the_steady_phase_is_summarised():
    """Warm-up and baseline are other experiments."""
    result = summary([request(0, 9, phase="warmup"), request(10, 11, phase="baseline"), request(20, 21)])

    assert 1 == result.requests.total
    assert 1.0 == result.ttft.max


def test_nothing_measured_is_missing_not_zero():
    """An interrupted run may have no steady request at all."""
    result = summary([], state="interrupted")

    assert 0 == result.ttft.n and result.ttft.p50 is None
    assert result.rates.requests_per_s is None and result.rates.output_tokens_per_s is None
    assert result.tokens.output is None and result.tokens.source is None
    assert "interrupted" == result.state


@pytest.mark.parametrize(
    ("sources", "expected"),
    [(["usage"] * 2, "usage"), (["chunks"] * 2, "chunks"), (["usage", "chunks"], "mixed")],
)
def test_the_source_of_token_counts_is_named(sources, expected):
    """Counted chunks are not tokens, and the reader is told."""
    result = summary([request(n, n + 0.5, n + 1, token_source=source) for n, source in enumerate(sources)])

    assert expected == result.tokens.source
    assert (expected == "usage") == (not result.notes)


def test_the_prompts_tail_is_left_out_and_told():
    """More chunks than tokens in answers that ran to their limit: the first is no token."""
    tail = {"first_text": "\n", "finish_reason": "length"}
    records = [request(n, n + 0.1, n + 0.5, n + 0.6, output=2, **tail) for n in range(3)]
    result = summary(records)

    assert result.ttft.p50 == pytest.approx(0.5)
    assert any("3 chunks with the prompt's own tail" in note for note in result.notes)


def test_a_batched_stream_is_told():
    """Chunks of one read share a stamp; one in five is the limit."""
    together = summary([request(0, 1, 1, 1, 2, 2, 3)])
    apart = summary([request(0, 1, 2, 3, 4, 5, 6, 6)])

    assert any("arrived together" in note for note in together.notes)
    assert not apart.notes


def test_cached_prompt_tokens_are_told():
    """A prefix cache makes the TTFT of a benchmark shine."""
    assert any("prefix cache" in note for note in summary([request(0, 1, cached_tokens=1)]).notes)
    assert not summary([request(0, 1, cached_tokens=1, prompt_tokens=11)]).notes
    assert not summary([request(0, 1, cached_tokens=None)]).notes


def test_itl_is_not_published_from_chunks():
    """Null unless the tokens of each chunk are known."""
    assert summary([request(0, 1, 2)]).itl is None


@pytest.mark.parametrize(
    ("state", "expected"),
    [("interrupted", "interrupted"), ("failed", "the server left"), ("running", "going on")],
)
def test_a_run_that_is_not_complete_says_so(state, expected):
    """Its table must not be read as the whole."""
    facts = RunFacts(run="r", error="the server left")

    assert expected in summarise(facts, state, []).notes[0]
    assert () == summary([]).notes
