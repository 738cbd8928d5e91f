"""Other tools' numbers from one stream: the same bytes, four tables."""

from __future__ import annotations

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
        ("guidellm", "TPOT", 129.5),
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
