"""Other tools' numbers from one stream: the same bytes, four tables."""

from __future__ import annotations

import msgspec
import pytest

from perfdoctor import registry
from perfdoctor.model import RequestRecord, StyleRow

TOKENS_S = (0.220, 0.320, 0.420, 0.520)


def stream(**changes) -> RequestRecord:
    """Role chunk at 20 ms, four one-token chunks, finish at 530, usage at 540, [DONE] and the end at 544."""
    fields = {
        "id": 1,
        "phase": "steady",
        "due_s": 0.0,
        "sent_s": 0.0,
        "written_s": 0.002,
        "first_event_s": 0.020,
        "first_token_s": TOKENS_S[0],
        "first_answer_s": TOKENS_S[0],
        "last_token_s": TOKENS_S[-1],
        "end_s": 0.544,
        "token_at_s": TOKENS_S,
        "output_tokens": 4,
        "token_source": "usage",
        "finish_reason": "stop",
    }
    return RequestRecord(**{**fields, **changes})


def table(style: str, *records: RequestRecord) -> dict[str, StyleRow]:
    rows = registry.load_member("perfdoctor.loadgen.styles", style, "STYLE")[0].rows(records)
    return {row.name: row for row in rows}


@pytest.mark.parametrize(
    ("style", "name", "expected_ms"),
    [
        ("vllm", "TTFT", 220), ("vllm", "E2EL", 520), ("vllm", "TPOT", 100), ("vllm", "ITL", 100),
        ("sglang", "TTFT", 220), ("sglang", "E2E latency", 544), ("sglang", "TPOT", 108),
        ("guidellm", "TTFT", 218), ("guidellm", "Request latency", 542), ("guidellm", "ITL", 100),
        ("guidellm", "TPOT", 129.5), ("guidellm", "TTFOT", 218),
        ("aiperf", "Time to First Token", 220), ("aiperf", "Time to Second Token", 100),
        ("aiperf", "Inter Token Latency", 100), ("aiperf", "Output Token Throughput Per User", 10),
    ],
)  # fmt: skip
def test_one_stream_in_each_tools_words(style, name, expected_ms):
    """The trailer is decoding to SGLang, the first token's wait is a token's to guidellm."""
    assert expected_ms == pytest.approx(table(style, stream())[name].mean)


def test_reasoning_comes_before_the_first_output_token():
    """Two reasoning chunks first: aiperf tells both instants apart."""
    row = table("aiperf", stream(first_answer_s=0.420))

    assert 220 == pytest.approx(row["Time to First Token"].mean)
    assert 420 == pytest.approx(row["Time to First Output Token"].mean)
    assert 418 == pytest.approx(table("guidellm", stream(first_answer_s=0.420))["TTFOT"].mean)


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("vllm", {"Request throughput": 1.0, "Output token throughput": 4.0, "Total token throughput": 14.0}),
        ("sglang", {"Request throughput": 1.0, "Input token throughput": 10.0, "Concurrency": 0.544}),
        ("guidellm", {"Requests Per Sec": 1.0, "Output Tokens Per Sec": 4.0}),
        ("aiperf", {"Request Throughput": 1.0, "Output Token Throughput": 4.0}),
    ],
)
def test_throughput_is_over_the_whole_run(style, expected):
    """Two answers in 2 s from the first request to the last end, a failed one in between."""
    late_s = 2.0 - 0.544
    instants = {
        name: at for name, at in msgspec.structs.asdict(stream()).items() if name.endswith("_s") and at
    }
    later = {name: late_s + at for name, at in instants.items() if name != "token_at_s"}
    later |= {"sent_s": late_s, "token_at_s": tuple(late_s + at for at in TOKENS_S)}
    answers = [stream(prompt_tokens=10), stream(prompt_tokens=10, **later)]
    rows = table(style, *answers, stream(outcome="reset", prompt_tokens=10))

    assert expected == pytest.approx({name: rows[name].mean for name in expected})
    assert {2} == {rows[name].n for name in expected}


def test_tokens_of_the_first_response_are_no_decoding_where_they_are_told():
    """Five tokens in four chunks, two of them in the first: three came after it."""
    told = stream(output_tokens=5, token_counts=(2, 1, 1, 1), token_source="per_chunk")
    untold = stream(output_tokens=5)
    absurd = stream(output_tokens=5, token_counts=(5, 0, 0, 0), token_source="per_chunk")

    assert 100 == pytest.approx(table("aiperf", told)["Inter Token Latency"].mean)
    assert 75 == pytest.approx(table("aiperf", untold)["Inter Token Latency"].mean)
    assert 75 == pytest.approx(table("aiperf", absurd)["Inter Token Latency"].mean)


@pytest.mark.parametrize("style", ["vllm", "sglang", "guidellm", "aiperf"])
def test_what_does_not_exist_is_missing(style):
    """One token has no pace, failures and the warm-up are no part, and nothing at all gives no number."""
    one = stream(token_at_s=(0.220,), last_token_s=0.220, output_tokens=1)
    failed = stream(outcome="reset")
    warm = stream(phase="warmup")

    paces = [r for r in table(style, one, failed, warm).values() if r.name in ("TPOT", "Inter Token Latency")]
    assert all(row.n <= 1 for row in table(style, one, failed, warm).values())
    assert style == "guidellm" or all(row.mean is None for row in paces)
    assert all(row.mean is None and row.p99 is None for row in table(style).values())


def test_percentiles_are_taken_as_the_tool_takes_them():
    """Of 100 and 200 ms, numpy's p90 is 190; the nearest rank is 200."""
    records = [stream(first_token_s=t, written_s=0.0) for t in (0.1, 0.2)]

    assert 190 == pytest.approx(table("vllm", *records)["TTFT"].p90)
    assert 200 == pytest.approx(table("guidellm", *records)["TTFT"].p90)


@pytest.mark.parametrize("style", ["vllm", "sglang", "guidellm", "aiperf"])
def test_every_row_says_what_it_is(style):
    """A number without its definition reconciles nothing."""
    assert all(row.definition and row.unit for row in table(style, stream()).values())
