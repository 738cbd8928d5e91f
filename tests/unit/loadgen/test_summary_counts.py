"""Rates, counts and latencies from hand-made records."""

import pytest
from summary_cases import failed, request, summary, unsent

from perfdoctor.loadgen.summary import busy_window, summarise
from perfdoctor.model import RunFacts


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
        failed(2, 2.5, error="slow down"),
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


def test_an_open_loops_window_is_its_schedule():
    """Rates run from the first due instant to the last: the tail that drains is nobody's rate."""
    records = [request(0, 1), request(2, 3), request(4, 5, 9)]
    rates = summary(records, arrival="constant", rate=0.5).rates

    assert (0, 4) == (rates.start_s, rates.end_s)
    assert 2 / 4 == rates.requests_per_s
    assert (0.5, 0.5) == (rates.asked_per_s, rates.sent_per_s)


def test_a_ramps_asked_rate_is_what_its_schedule_came_to():
    """Nobody asked for one rate: five requests due in 8 s are one every 2 s; sent were four in 6 s."""
    records = [*(request(n, n + 1) for n in (0, 2, 4, 6)), unsent(8.0)]
    rates = summary(records, arrival="poisson", ramp=((0.0, 1.0),)).rates

    assert (0.5, 0.5) == (rates.asked_per_s, rates.sent_per_s)


def test_a_closed_loop_is_asked_for_no_rate():
    """Its pace is the server's."""
    rates = summary([request(0, 1), request(1, 2)]).rates

    assert rates.asked_per_s is None and rates.sent_per_s is None


def test_warm_up_that_was_handed_over_serves_on():
    """The users are busy from the first steady request; what the warm-up's request still delivers counts."""
    warm = request(0, 2, 4, phase="warmup")
    records = [request(1, 2, 3), request(3, 4, 5), request(4, 6, 7)]
    result = summary([warm, *records], users=2)

    assert (1, 5) == (result.rates.start_s, result.rates.end_s)
    assert 2.0 == result.rates.in_flight_mean
    assert 6 / 4 == result.rates.output_tokens_per_s
    assert (3, 6, 6) == (result.requests.total, result.tokens.output, result.tokens.in_window)


def test_warm_up_that_was_drained_is_no_part():
    """It ended before the first steady request was sent: the window waits for all users as ever."""
    warm = request(0, 1, phase="warmup")
    records = [request(1, 2), request(1.5, 3), request(2, 4), request(3, 4)]

    assert 1.5 == summary([warm, *records], users=2).rates.start_s


def test_due_requests_that_were_never_sent_are_told():
    """They are censored, no failures, and no part of what was still open."""
    result = summary([request(0, 1), unsent(0.5), unsent(0.9)], arrival="constant", rate=2.0)

    assert (3, 1, 2, 2, {}) == (
        result.requests.total, result.requests.ok, result.requests.censored, result.requests.not_sent,
        result.requests.failed,
    )  # fmt: skip
    assert 1 == result.error_latency.n + result.e2e.n
    assert "2 requests were due but not sent before the load ended" in result.notes
    assert not any("still open" in note for note in result.notes)


@pytest.mark.parametrize(("late_s", "expected"), [(0.010, 0), (0.011, 1)])
def test_late_is_what_was_sent_ten_milliseconds_after_its_instant(late_s, expected):
    """Only where a schedule said when; users of a closed loop send when they are ready."""
    records = [request(0, 1), request(late_s, 1, due_s=0.0)]

    assert expected == summary(records, arrival="constant", rate=1.0).requests.late
    assert 0 == summary(records).requests.late


def test_latencies_from_the_schedule_hold_the_wait_to_be_sent():
    """Due at 1, sent at 3, first token at 4, over at 6."""
    result = summary([request(3, 4, 6, due_s=1.0, first_answer_s=6)], arrival="constant", rate=1.0)

    assert (1, 3) == (result.ttft.p50, result.ttft_from_schedule.p50)
    assert (3, 5) == (result.ttfa.p50, result.ttfa_from_schedule.p50)
    assert (3, 5) == (result.e2e.p50, result.e2e_from_schedule.p50)


def test_itl_is_a_pause_divided_among_the_tokens_it_brought():
    """Four tokens every 40 ms: 10 ms for each, while the gaps are 40."""
    stamps = [0.1 + 0.04 * n for n in range(5)]
    result = summary([request(0, *stamps, output=20, token_counts=(4,) * 5, token_source="per_chunk")])

    assert 16 == result.itl.n
    assert 0.01 == pytest.approx(result.itl.p50) == pytest.approx(result.itl.max)
    assert 0.04 == pytest.approx(result.gap.p50)
    assert 0.01 == pytest.approx(result.tpot.p50)
    assert 100 == pytest.approx(result.user_tokens_per_s.p50)


def test_itl_is_known_where_an_answer_cut_at_its_limit_has_a_chunk_per_token():
    """No end mark is hidden among its tokens. A stopped one has one, so equal counts prove nothing."""
    cut = summary([request(0, 1, 2, 3, finish_reason="length")])
    stopped = summary([request(0, 1, 2, 3)])

    assert (2, 1.0) == (cut.itl.n, cut.itl.p50)
    assert stopped.itl is None
    assert 2 == stopped.gap.n


def test_one_token_has_a_first_and_no_pace():
    """Null, not 0 ms per token."""
    result = summary([request(0, 1)])

    assert (1, 0, 0) == (result.ttft.n, result.tpot.n, result.user_tokens_per_s.n)
    assert result.tpot.p50 is None and result.user_tokens_per_s.mean is None


def test_answers_of_one_and_two_tokens_have_one_pace_between_them():
    """It is that of the second."""
    result = summary([request(0, 1), request(1, 2, 2.5)])

    assert (2, 1, 0.5, 2.0) == (result.ttft.n, result.tpot.n, result.tpot.p50, result.user_tokens_per_s.p50)


def test_an_early_stop_is_told():
    """512 tokens were asked for and 10 came: req/s of such a run compares with nothing."""
    result = summary([request(0, *(0.1 * n for n in range(1, 11)), asked_tokens=512)])

    assert (512, 10) == (result.tokens.asked, result.tokens.delivered)
    assert any("2 % as long as asked for" in note for note in result.notes)


def test_failures_count_as_endless_in_a_row_of_their_own():
    """Of ten, three failed: the median is still a time, the p90 is none, and there is no mean."""
    records = [request(n, n + 1.0 + n) for n in range(7)] + [failed(n, n + 0.001) for n in range(7, 10)]
    result = summary(records)

    assert (7, 4.0) == (result.e2e.n, result.e2e.p50)
    assert (10, 5.0) == (result.e2e_with_failures.n, result.e2e_with_failures.p50)
    assert (1.0, None, None, None) == (
        result.e2e_with_failures.min, result.e2e_with_failures.p90, result.e2e_with_failures.max,
        result.e2e_with_failures.mean,
    )  # fmt: skip
    assert "p90" not in result.e2e_with_failures.intervals


def test_without_failures_that_row_is_end_to_end():
    """Nothing to add."""
    result = summary([request(0, 1), request(1, 3)])

    assert result.e2e == result.e2e_with_failures


def test_where_all_failed_it_is_none_throughout():
    """The number of requests is still told."""
    result = summary([failed(0, 1), failed(1, 2)])

    assert (2, None, None) == (
        result.e2e_with_failures.n, result.e2e_with_failures.p50, result.e2e_with_failures.min,
    )  # fmt: skip
    assert (0, None) == (result.e2e.n, result.e2e.p50)


def test_fast_failures_do_not_flatter_the_latencies():
    """Three refusals of 1 ms beside seven answers of 2 s: the median is that of the seven."""
    records = [request(n, n + 2.0) for n in range(7)] + [failed(n, n + 0.001) for n in range(3)]
    result = summary(records)

    assert 2.0 == result.e2e.p50
    assert (3, pytest.approx(0.001)) == (result.error_latency.n, result.error_latency.p50)


def test_the_stages_are_those_that_some_request_went_through():
    """A kept connection has no connect; one without TLS stands with its TCP."""
    new = request(
        0, 1, dialled_s=0.1, tcp_s=0.3, connected_s=0.3, written_s=0.3, headers_s=0.6, first_event_s=0.7,
    )  # fmt: skip
    kept = request(2, 3, written_s=2.2, headers_s=2.4, first_event_s=2.4)
    stages = summary([new, kept]).stages

    assert {"pool_wait", "connect", "headers", "first_byte", "transfer"} == set(stages)
    assert (2, 1) == (stages["pool_wait"].n, stages["connect"].n)
    assert 0.2 == pytest.approx(stages["connect"].p50) == pytest.approx(stages["pool_wait"].max)


def test_tls_is_a_stage_of_its_own():
    """From TCP to a connection that can be written to."""
    record = request(0, 1, dialled_s=0.0, tcp_s=0.1, connected_s=0.4, written_s=0.4)

    assert 0.3 == pytest.approx(summary([record]).stages["tls"].p50)


def test_prompts_and_lengths_are_counted():
    """Two of three prompts are distinct; 30 prompt tokens, of which 5 were cached; one dead connection."""
    records = [
        request(0, 1, prompt_hash="a", cached_tokens=5),
        request(1, 2, prompt_hash="b", redialled=True),
        request(2, 3, prompt_hash="b", finish_reason="length"),
    ]
    result = summary(records)

    assert (pytest.approx(2 / 3), 1) == (result.requests.distinct_prompts_share, result.requests.redialled)
    assert {"stop": 2, "length": 1} == result.requests.finish_reasons
    assert (30, 5, 3) == (result.tokens.prompt, result.tokens.cached, result.tokens.output)


def test_an_answer_in_one_piece_has_no_first_token():
    """Its tokens arrived with its end, and its time is to there."""
    record = request(0, end_s=2.0, output=8)
    result = summary([record, request(2, end_s=4.0, output=8)])

    assert (0, None, 2.0) == (result.ttft.n, result.ttft.p50, result.e2e.p50)
    assert (16, 16, 0) == (result.tokens.output, result.tokens.in_window, result.requests.empty_answers)
    assert 4.0 == result.rates.output_tokens_per_s


def test_plain_answers_have_rates_and_no_tokens():
    """Any HTTP: nothing was counted, so nothing is 0."""
    plain = {"output_tokens": None, "token_source": None, "finish_reason": None, "prompt_tokens": None}
    result = summary([request(n, end_s=n + 1.0, **plain) for n in range(4)])

    assert (1.0, None, None) == (
        result.rates.requests_per_s, result.rates.output_tokens_per_s, result.rates.input_tokens_per_s,
    )  # fmt: skip
    assert result.tokens.output is None and result.tokens.in_window is None and result.itl is None


def test_a_peak_is_never_below_the_mean():
    """Tokens at both ends of 1.5 s: no whole second holds both, but they are more than one in 1.5 s."""
    rates = summary([request(0, 0.1, 1.5)]).rates

    assert rates.peak_output_tokens_per_s == pytest.approx(rates.output_tokens_per_s)


def test_most_in_flight_is_a_count_at_one_instant():
    """One leaves in the instant that the next is sent: they never met."""
    assert 1 == summary([request(0, 1), request(1, 2), request(2, 3)]).rates.in_flight_max
    assert 2 == summary([request(0, 1), request(0.9, 2), request(2, 3)]).rates.in_flight_max


def test_messages_are_those_of_the_first_failure_of_a_class():
    """By when it ended, whatever the order of the log."""
    records = [failed(3, 4, error="second"), failed(0, 1, error="first")]

    assert {"http_429": "first"} == summary(records).errors


def test_nothing_measured_is_nothing_to_trust():
    """An SLO of trust=valid alone would pass otherwise. One request is something."""
    assert "invalid" == summary([request(0, 1, phase="warmup")]).trust.status
    assert "valid" == summary([request(0, 1)]).trust.status
    assert summary([], slo="trust=valid").slo.met is False
