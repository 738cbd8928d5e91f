"""Public bugs of load generators, each with the test that holds it right here.

The table is the coverage; a test that is renamed or gone fails this file. The few that are sums of hand-made
requests are tested below it.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from summary_cases import failed, request, summary

TESTS = Path(__file__).parents[2]

# issue or pull request -> (what broke, "file::test" under tests/)
HELD_BY: dict[str, tuple[str, tuple[str, ...]]] = {
    "vllm-project/guidellm#216": ("no first token: a TTFT of minus 50 years", (
        "contract/test_wire.py::test_every_framing_has_its_outcome",
        "unit/loadgen/test_summary_properties.py::test_no_latency_is_longer_than_the_run",
        "e2e/test_random_orders.py::test_any_orders_to_any_server",
    )),
    "vllm-project/guidellm#444": ("failures mixed into latencies", (
        "unit/loadgen/test_summary_counts.py::test_fast_failures_do_not_flatter_the_latencies",
    )),
    "vllm-project/guidellm#470": ("the client is the limit, and nobody says so", (
        "contract/test_own_error.py::test_a_client_that_is_held_up_says_so",
        "unit/test_trust.py::test_each_limit_from_both_sides",
    )),
    "vllm-project/guidellm#737": ("reasoning is no first token", (
        "contract/test_loadgen_protocols.py::test_the_first_answer_comes_after_the_reasoning",
    )),
    "triton-inference-server/perf_analyzer#176": ("comments, and tokens that look like events", (
        "contract/test_wire.py::test_every_row_of_the_conformance_table",
        "unit/loadgen/test_sse.py::test_reads_may_be_cut_anywhere",
    )),
    "anomalyco/opencode#50871": ("a keep-alive sent as data", (
        "contract/test_loadgen_protocols.py::test_what_holds_a_connection_open_is_no_first_token",
    )),
    "triton-inference-server/perf_analyzer#416": ("an answer in one piece to a streaming request", (
        "contract/test_loadgen_streams.py::test_every_kind_of_answer_has_its_outcome",
        "contract/test_loadgen_streams.py::test_the_first_bytes_of_a_page_are_kept",
    )),
    "triton-inference-server/server#2137": ("a server's time longer than the client's", (
        "contract/test_loadgen_quirks.py::test_a_server_cannot_have_taken_longer_than_its_answer",
    )),
    "ai-dynamo/dynamo#3674": ("a success rate of -300 %", (
        "unit/loadgen/test_known_bugs.py::test_errors_are_occurrences_and_not_types",
        "unit/loadgen/test_summary_properties.py::test_every_request_is_one_thing",
    )),
    "ai-dynamo/dynamo#12883": ("one name for a mean of gaps and a mean of requests", (
        "unit/loadgen/test_known_bugs.py::test_a_mean_of_gaps_is_not_a_mean_of_requests",
        "unit/test_latency.py::test_every_quantity_and_stage_has_a_definition",
    )),
    "aws-samples/sample-apj-sup-sa#181": ("time-outs cost the run; twelve prompts for 16,449 requests", (
        "unit/loadgen/test_known_bugs.py::test_one_timeout_costs_itself",
        "unit/loadgen/test_summary_notes.py::test_prompts_that_repeat",
    )),
    "vllm-project/vllm#39963": ("a small read buffer at long contexts", (
        "contract/test_loadgen_quirks.py::test_long_prompts_and_long_answers_keep_all_users_busy",
        "contract/test_loadgen_server_view.py::test_the_servers_view_is_that_of_the_load_alone",
    )),
    "vllm-project/vllm#14795": ("one empty answer ends the run", (
        "contract/test_loadgen_protocols.py::test_an_answer_of_done_alone_fails_by_itself",
    )),
    "vllm-project/vllm#7242": ("the TTFT among the gaps", (
        "unit/test_latency.py::test_three_tokens_have_exactly_two_gaps",
        "contract/test_loadgen_quirks.py::test_gaps_are_one_fewer_than_tokens",
    )),
    "vllm-project/vllm#27485": ("a chunk taken for a token", (
        "contract/test_loadgen_protocols.py::test_chunks_of_four_tokens_have_gaps_of_a_quarter",
        "contract/test_loadgen_quirks.py::test_tokens_merged_into_few_chunks_leave_their_pace_right",
    )),
    "vllm-project/vllm#3400": ("a division by no tokens", (
        "contract/test_loadgen_streams.py::test_finish_without_a_token_has_no_ttft",
    )),
    "vllm-project/vllm#4252": ("a queue taken for slowness", (
        "contract/test_loadgen_ends.py::test_a_serial_server_with_ten_at_once",
        "e2e/test_diagnose_servers.py::test_one_request_at_a_time_is_called_serial",
    )),
    "vllm-project/vllm#13412": ("users of a closed loop that come together", (
        "unit/loadgen/test_summary_notes.py::test_users_that_send_together",
    )),
    "sgl-project/sglang#24254": ("the limit taken for the length", (
        "unit/loadgen/test_summary_counts.py::test_an_early_stop_is_told",
    )),
    "sgl-project/sglang#10746": ("TPOT of an early stop", (
        "unit/loadgen/test_summary_counts.py::test_answers_of_one_and_two_tokens_have_one_pace_between_them",
    )),
    "sgl-project/sglang#7084": ("ten tokens of a thousand", (
        "contract/test_loadgen_protocols.py::test_a_thousand_chunks_without_usage_are_a_thousand",
    )),
    "sgl-project/sglang#15732": ("prompts of another length than asked for", (
        "unit/loadgen/test_prompts.py::test_lengths_are_exact_with_a_tokenizer",
        "e2e/test_protocol_servers.py::test_a_tokenizer_makes_prompts_exact",
    )),
    "ray-project/llmperf#99": ("the TTFT and whole chunks in the pace", (
        "unit/test_latency.py::test_tpot_divides_by_tokens_and_not_by_chunks",
    )),
    "ray-project/llmperf#90": ("an unknown tokenizer", (
        "unit/loadgen/test_tokens.py::test_a_folder_without_a_tokenizer_is_refused",
        "unit/loadgen/test_tokens.py::test_the_best_source_counts_and_is_named",
    )),
    "openvinotoolkit/openvino.genai#1244": ("a latency longer than the run", (
        "unit/loadgen/test_summary_properties.py::test_no_latency_is_longer_than_the_run",
    )),
    "LMCache/LMBenchmark#27": ("one token, an endless rate", (
        "unit/loadgen/test_summary_counts.py::test_one_token_has_a_first_and_no_pace",
        "contract/test_loadgen_quirks.py::test_gaps_are_one_fewer_than_tokens",
    )),
    "aarora79/agentic-coding-harness-benchmarks#32": ("a bucket without end printed as a number", (
        "unit/diagnosis/test_histograms.py::test_the_last_bucket_is_above_and_no_number",
    )),
    "modelscope/evalscope#1076": ("a total called a rate", (
        "unit/loadgen/test_known_bugs.py::test_a_rate_has_a_duration",
    )),
    "modelscope/evalscope#413": ("a TTFT without a stream", (
        "contract/test_loadgen_protocols.py::test_an_answer_in_one_piece_has_no_first_token",
    )),
    "modelscope/evalscope#408": ("client and server disagree about TTFT", (
        "unit/reports/test_report_load_words.py::test_the_servers_view_stands_beside_ours",
        "contract/test_loadgen_server_view.py::test_the_servers_view_is_that_of_the_load_alone",
    )),
}  # fmt: skip


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("bug", HELD_BY)
def test_every_known_bug_has_its_test(bug: str):
    """By the names that the files hold now."""
    for place in HELD_BY[bug][1]:
        file, _, name = place.partition("::")
        assert name in names_in(file), place


def test_errors_are_occurrences_and_not_types():
    """Four of one class and one of another, of five: nothing succeeded, and that is 0 %, not -300 %."""
    found = summary([*[failed(n, n + 0.5, "http_500") for n in range(4)], failed(5, 6, "timeout")])

    assert ({"http_500": 4, "timeout": 1}, 0, 5) == (
        found.requests.failed, found.requests.ok, found.requests.total,
    )  # fmt: skip


def test_a_mean_of_gaps_is_not_a_mean_of_requests():
    """Two tokens 1 s apart, 201 with 10 ms each: 505 ms a request, 15 ms a gap; both are shown."""
    short, long = (0.5, 1.5), tuple(2 + n / 100 for n in range(201))
    found = summary([request(0, *short, finish_reason="length"), request(1.5, *long, finish_reason="length")])

    assert (2, 0.505) == (found.tpot.n, pytest.approx(found.tpot.mean))
    assert found.itl is not None
    assert (201, pytest.approx(3 / 201)) == (found.itl.n, found.itl.mean)
    assert found.gap.mean == found.itl.mean


def test_one_timeout_costs_itself():
    """What the others took stands, and so do its own tokens."""
    cut = request(
        0, 1, end_s=60, outcome="timeout", error="no complete answer within 60 s", finish_reason=None
    )
    found = summary([cut, *[request(n, n + 0.5, n + 0.9) for n in range(60, 69)]])

    assert ({"timeout": 1}, 9) == (found.requests.failed, found.requests.ok)
    assert (9, 0.5) == (found.ttft.n, found.ttft.p50)
    assert 19 == found.tokens.output


def test_a_rate_has_a_duration():
    """One request, 800 tokens in 8 s: a hundred a second."""
    found = summary([request(0, *(n / 100 for n in range(1, 801)))])

    assert (100.0, 0.125) == (found.rates.output_tokens_per_s, found.rates.requests_per_s)
