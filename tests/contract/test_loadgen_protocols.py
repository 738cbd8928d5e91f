"""What is asked of a server in each API and how its answers are read, through the whole driver."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfdoctor import latency
from perfdoctor.clock import Clock
from perfdoctor.errors import UsageError
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import Load, Prompts, RequestRecord, Target
from tests.servers import _models, truth
from tests.servers.truth import Truth
from tests.servers.truth_scripts import CHUNKED_HEAD, DONE, FINISH, GOOD, LAST_CHUNK, TOKENS, chunk


@pytest.fixture(scope="module")
def server() -> Iterator[Truth]:
    with truth.serving("--ttft-ms", "20", "--gap-ms", "5", "--tokens", "4") as running:
        yield running


def drive(
    endpoint: str, requests: int = 1, prompts: Prompts | None = None, seed: int = 0, **target: Any
) -> list[RequestRecord]:
    """The records of one user's requests."""
    records: list[RequestRecord] = []

    async def conduct() -> None:
        load = Load(concurrency=1, timeout_s=10.0, prompts=prompts or Prompts(), seed=seed)
        async with Driver(Target(endpoint=endpoint, **target), load, Clock(), records.append) as driver:
            await driver.run_stage(Stage("steady", 1, requests=requests))

    loop.run(conduct())
    return records


def asked(server: Truth, record: RequestRecord) -> dict[str, Any]:
    """What the server got for a record."""
    return server.told()[str(record.id)]


# ------------------------------------------------------------------------------ whole answers


@pytest.mark.parametrize(
    ("script", "outcome", "tokens", "source", "finish"),
    [
        ("whole", "ok", 3, "usage", "stop"),
        ("whole-without-usage", "ok", None, None, None),
        ("whole-error", "in_band_error", None, None, None),
        ("whole-cut", "truncated", None, None, None),
        ("html", "bad_stream", None, None, None),
        ("500", "http_500", None, None, None),
    ],
)
def test_an_answer_in_one_piece_has_no_first_token(server, script, outcome, tokens, source, finish):
    """The time of its last byte is no TTFT; its tokens are not known unless the server tells them."""
    (record,) = drive(server.scripted(script), stream=False)

    assert (outcome, tokens, source, finish) == (
        record.outcome, record.output_tokens, record.token_source, record.finish_reason,
    )  # fmt: skip
    assert latency.ttft(record) is None and not record.token_at_s
    assert (outcome == "ok") == (record.error is None)


def test_an_answer_in_one_piece_is_asked_for_as_one(server):
    """No stream, no options of a stream; its length is that of the whole."""
    (record,) = drive(server.timed(ttft_ms=40, gap_ms=5, tokens=8), stream=False)
    told = asked(server, record)

    assert not json.loads(told["body"])["stream"] and "stream_options" not in told["body"]
    assert "application/json" == told["headers"]["accept"]
    assert ("ok", 8, 7) == (record.outcome, record.output_tokens, record.prompt_tokens)
    assert 0.07 < record.end_s - record.sent_s < 0.5


def test_a_tokenizer_counts_what_the_server_does_not(server):
    """And the record says so."""
    (record,) = drive(
        server.scripted("whole-without-usage"), prompts=Prompts(tokenizer=str(_models.tiny())), stream=False
    )

    assert "tokenizer" == record.token_source
    assert 3 <= record.output_tokens <= 6


# ------------------------------------------------------------------------------ tokens of chunks


def test_chunks_of_four_tokens_have_gaps_of_a_quarter(server):
    """Usage in every chunk tells their tokens: 40 ms between chunks of 4 are 10 ms a token."""
    (record,) = drive(
        server.timed(ttft_ms=20, gap_ms=40, tokens=24, chunk=4), prompts=Prompts(count_per_chunk=True)
    )
    per_token = [
        gap / tokens for gap, tokens in zip(latency.gaps(record), record.token_counts[1:], strict=True)
    ]

    assert (4,) * 6 == record.token_counts
    assert 24 == record.output_tokens
    assert 0.009 < statistics.median(per_token) < 0.012


def test_counts_of_chunks_are_asked_for_only_when_wanted(server):
    """Not every server can; without, they are not known."""
    (record,) = drive(server.timed(ttft_ms=5, gap_ms=1, tokens=4))

    assert () == record.token_counts
    assert "continuous_usage_stats" not in asked(server, record)["body"]


def test_a_server_that_refuses_counts_is_asked_without(server):
    """Once in the run; the refused attempts are in no statistics."""
    records = drive(server.scripted("refuses-usage"), requests=3, prompts=Prompts(count_per_chunk=True))

    assert ["ok"] * 3 == [r.outcome for r in records]
    assert "stream_options" not in asked(server, records[2])["body"]


# ------------------------------------------------------------------------------ kinds of answers


@pytest.mark.parametrize(
    ("script", "chunks", "tokens", "finish"),
    [("tool-call-only", 2, 2, "tool_calls"), ("one-token", 1, 1, "length"), ("two-choices", 4, 4, "stop")],
)
def test_every_kind_of_payload_is_timed(server, script, chunks, tokens, finish):
    """A call of a tool is an answer; one token has no pace, which is not a pace of zero."""
    (record,) = drive(server.scripted(script))

    assert ("ok", chunks, tokens, finish) == (
        record.outcome, len(record.token_at_s), record.output_tokens, record.finish_reason,
    )  # fmt: skip
    assert latency.ttft(record) is not None
    assert (latency.tpot(record) is None) == (tokens == 1)


def test_one_of_two_choices_is_half_an_answer(server):
    """The stream ended before the other was finished."""
    (record,) = drive(server.scripted("half-of-two-choices"))

    assert "truncated" == record.outcome


def test_the_first_answer_comes_after_the_reasoning(server):
    """Five chunks of reasoning, 20 ms apart, come first."""
    (record,) = drive(server.scripted("reasoning-first"))

    assert record.token_at_s[0] == record.first_token_s
    assert record.token_at_s[5] == record.first_answer_s
    assert 0.09 < latency.ttfa(record) - latency.ttft(record) < 0.3


def test_an_answer_of_done_alone_fails_by_itself(server):
    """The run goes on, and the failure has no latency that could look fast."""
    records = drive(server.scripted("good+bare-done"), requests=6)

    assert (3, 3) == tuple(sum(r.outcome == kind for r in records) for kind in ("ok", "empty"))
    assert {None} == {latency.ttft(r) for r in records if r.outcome == "empty"}


def test_what_holds_a_connection_open_is_no_first_token(server):
    """A keep-alive sent as data, 100 ms before anything was generated."""
    steps = [
        CHUNKED_HEAD,
        chunk(b"data: : keepalive\n\n"),
        0.1,
        *(chunk(piece) for piece in GOOD),
        LAST_CHUNK,
    ]
    (record,) = drive(server.put("waits", steps))

    assert "ok" == record.outcome
    assert 0.1 <= latency.ttft(record) and 0.1 <= record.first_event_s - record.sent_s


def test_a_thousand_chunks_without_usage_are_a_thousand(server):
    """Whatever limit was asked for; the record says that chunks were counted."""
    (record,) = drive(server.put("many", [CHUNKED_HEAD, chunk(TOKENS[0] * 1000 + FINISH + DONE), LAST_CHUNK]))

    assert (1000, "chunks") == (record.output_tokens, record.token_source)


def test_extra_members_reach_the_server(server):
    """Laid over the body."""
    (record,) = drive(server.scripted("good"), extra_body={"top_k": 1, "max_tokens": None})
    body = json.loads(asked(server, record)["body"])

    assert 1 == body["top_k"] and "max_tokens" not in body


# ------------------------------------------------------------------------------ responses


@pytest.mark.parametrize(
    ("script", "outcome", "chunks", "finish"),
    [
        ("responses-good", "ok", 3, "completed"),
        ("responses-cut-by-limit", "ok", 2, "length"),
        ("responses-call", "ok", 2, "completed"),
        ("responses-truncated", "truncated", 2, None),
        ("responses-error-first", "in_band_error", 0, None),
        ("responses-failed", "in_band_error", 2, None),
        ("good", "bad_stream", 0, None),
    ],
)
def test_the_responses_api_is_driven(server, script, outcome, chunks, finish):
    """Its own ending alone makes an answer complete; frames of another API are none."""
    (record,) = drive(server.scripted(script), api="responses")

    assert (outcome, chunks, finish) == (record.outcome, len(record.token_at_s), record.finish_reason)
    if outcome == "ok":
        assert (7, 3, 5) == (record.prompt_tokens, record.output_tokens, record.cached_tokens)


def test_the_responses_api_is_asked_at_its_path(server):
    """With its own name of the limit."""
    (record,) = drive(server.scripted("responses-good"), api="responses", prompts=Prompts(output_tokens=9))
    told = asked(server, record)

    assert told["path"].endswith("/v1/responses")
    assert 9 == json.loads(told["body"])["max_output_tokens"]
    assert record.first_token_s < record.first_answer_s


# ------------------------------------------------------------------------------ any HTTP


@pytest.mark.parametrize(
    ("script", "outcome", "status"),
    [
        ("text", "ok", 200),
        ("204", "ok", 204),
        ("redirect", "http_302", 302),
        ("404", "http_404", 404),
        ("500", "http_500", 500),
        ("whole-cut", "truncated", 200),
        ("closed-at-once", "reset", None),
    ],
)
def test_any_http_is_judged_by_its_status(server, script, outcome, status):
    """Bodies of any type are answers; nothing in them is taken for tokens."""
    (record,) = drive(server.scripted(script), api="http")

    assert (outcome, status) == (record.outcome, record.status)
    assert (None, None, ()) == (record.output_tokens, record.token_source, record.token_at_s)


def test_a_body_is_timed_and_counted(server):
    """First byte and length."""
    (record,) = drive(server.scripted("text"), api="http")

    assert len("hello") == record.body_bytes
    assert record.sent_s < record.headers_s <= record.first_event_s <= record.end_s


def test_events_of_any_kind_are_timed(server):
    """They are no tokens, and the stream need not say that it is over."""
    (record,) = drive(server.scripted("any-events"), api="http")

    assert ("ok", 2, None) == (record.outcome, len(record.token_at_s), record.output_tokens)
    assert latency.ttft(record) is not None


def test_a_template_is_filled_anew_for_each_request(server, tmp_path):
    """From the row, the number and the seed; the same seed sends the same bytes."""
    rows = tmp_path / "rows.csv"
    rows.write_text("city,prompt\nBonn,Hello\nUlm,Ho\n")

    def bodies(seed: int) -> list[dict[str, Any]]:
        records = drive(
            server.scripted("text") + "/{{city}}?n={{id}}",
            requests=3,
            prompts=Prompts(source="csv", file=str(rows)),
            seed=seed,
            api="http",
            method="PATCH",
            headers={"X-City": "{{city}}", "X-Fixed": "a"},
            body='{"city":{{city_json}},"said":{{prompt_json}},"key":"{{uuid}}","n":{{random(1,1000000)}}}',
        )
        told = [asked(server, record) for record in records]
        assert ["PATCH"] * 3 == [t["method"] for t in told]
        assert ["/Bonn?n=1", "/Ulm?n=2", "/Bonn?n=3"] == [t["path"].removeprefix("/s/text") for t in told]
        assert ["Bonn", "Ulm", "Bonn"] == [t["headers"]["x-city"] for t in told]
        assert {"a"} == {t["headers"]["x-fixed"] for t in told}
        assert {"application/json"} == {t["headers"]["content-type"] for t in told}
        return [json.loads(t["body"]) for t in told]

    first = bodies(seed=1)
    assert [("Bonn", "Hello"), ("Ulm", "Ho"), ("Bonn", "Hello")] == [(b["city"], b["said"]) for b in first]
    assert 3 == len({b["key"] for b in first})
    assert first == bodies(seed=1) != bodies(seed=2)


def test_a_trace_fills_templates_too(server, tmp_path):
    """Its rows' members are variables, before the replay as well."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"at_s":0,"prompt":"a","city":"Bonn"}\n{"at_s":0.01,"prompt":"b","city":"Ulm"}\n')
    records: list[RequestRecord] = []
    load = Load(arrival="replay", replay=str(trace))
    target = Target(endpoint=server.scripted("text"), api="http", body="{{city}}")

    async def conduct() -> None:
        async with Driver(target, load, Clock(), records.append) as driver:
            await driver.run_stage(Stage("baseline", 1, requests=1))
            await driver.run_stage(Stage("steady", None))

    loop.run(conduct())
    assert ["Bonn", "Bonn", "Ulm"] == [asked(server, record)["body"] for record in records]


def test_an_unknown_variable_is_refused_before_anything_is_sent(server):
    """Named, with those that exist."""
    with pytest.raises(UsageError, match="town"):
        drive(server.scripted("text"), api="http", body="{{town}}")


# ------------------------------------------------------------------------------ prompts


def test_a_conversation_carries_the_servers_answers(server, tmp_path):
    """The words of the stream, in the history of the next turn."""
    file = tmp_path / "talk.json"
    turns = [{"from": "human", "value": text} for text in ("One?", "Two?")]
    file.write_text(json.dumps([{"conversations": turns}]))
    records = drive(server.scripted("good"), requests=2, prompts=Prompts(source="sharegpt", file=str(file)))

    assert [1, 2] == [r.turn for r in records]
    assert [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "one two three"},
        {"role": "user", "content": "Two?"},
    ] == json.loads(asked(server, records[1])["body"])["messages"]


def test_a_conversation_goes_on_without_a_stream(server):
    """The answer in one piece is remembered too."""
    records = drive(server.scripted("whole"), requests=2, prompts=Prompts(turns=2), stream=False)

    assert {"role": "assistant", "content": "a b c"} == json.loads(asked(server, records[1])["body"])[
        "messages"
    ][1]


def test_rows_of_variables_alone_are_no_questions_to_a_model(server, tmp_path: Path):
    """Said before anything is sent."""
    rows = tmp_path / "rows.csv"
    rows.write_text("city\nBonn\n")

    with pytest.raises(UsageError, match="without a prompt"):
        drive(server.scripted("good"), prompts=Prompts(source="csv", file=str(rows)))


def test_equal_prompts_have_equal_hashes(server, tmp_path: Path):
    """So that a report can say how many were distinct."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt":"a"}\n{"prompt":"b"}\n')
    records = drive(server.scripted("good"), requests=3, prompts=Prompts(source="jsonl", file=str(rows)))

    assert 2 == len({r.prompt_hash for r in records})
    assert records[0].prompt_hash == records[2].prompt_hash
