"""What the driver makes of every kind of answer, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from perfdoctor import latency
from perfdoctor.clock import Clock
from perfdoctor.errors import NotOpenai, PerfdoctorError, Refused, UnknownModel
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import Load, RequestRecord, Target, Wire
from tests.servers import truth
from tests.servers.truth import Truth
from tests.servers.truth_scripts import (
    CHUNKED_HEAD,
    DONE,
    FINISH,
    LAST_CHUNK,
    ROLE,
    TOKENS,
    chunk,
    stream,
    usage,
)


@pytest.fixture(scope="module")
def server() -> Iterator[Truth]:
    with truth.serving("--ttft-ms", "20", "--gap-ms", "5", "--tokens", "4") as running:
        yield running


@pytest.fixture(autouse=True, params=["raw", "aiohttp"])
def wire(request: pytest.FixtureRequest) -> Wire:
    """Each test over both transports: the same answers must come out."""
    global WIRE
    WIRE = Wire(transport=request.param)
    return WIRE


WIRE = Wire()


def drive(
    endpoint: str, requests: int = 1, secret: str | None = None, timeout_s: float = 10.0, **target: Any
) -> tuple[list[RequestRecord], PerfdoctorError | None]:
    """The records of one user's requests, and what made the driver give up."""
    records: list[RequestRecord] = []

    async def conduct() -> PerfdoctorError | None:
        load = Load(concurrency=1, timeout_s=timeout_s)
        where = Target(endpoint=endpoint, wire=WIRE, **target)
        async with Driver(where, load, Clock(), records.append, secret) as driver:
            await driver.run_stage(Stage("steady", 1, requests=requests))
            return driver.aborted

    return records, loop.run(conduct())


# script -> (outcome, HTTP status, payload chunks, output tokens, their source)
OUTCOMES: dict[str, tuple[str, int | None, int, int | None, str | None]] = {
    "good": ("ok", 200, 3, 3, "usage"),
    "comments": ("ok", 200, 3, 3, "chunks"),
    "keepalive-data": ("ok", 200, 3, 3, "chunks"),
    "null-choices": ("ok", 200, 3, 3, "usage"),
    "no-done": ("ok", 200, 3, 3, "chunks"),
    "usage-in-finish": ("ok", 200, 3, 3, "usage"),
    "merged": ("ok", 200, 2, 4, "usage"),
    "llamacpp": ("ok", 200, 4, 4, "usage"),
    "finish-only": ("ok", 200, 0, 0, "usage"),
    "http-1.0": ("ok", 200, 3, 3, "usage"),
    "http-1.0-no-type": ("ok", 200, 3, 3, "usage"),
    "closes-after-stream": ("ok", 200, 3, 3, "usage"),
    "no-last-chunk": ("ok", 200, 3, 3, "usage"),
    "empty": ("empty", 200, 0, None, None),
    "bare-done": ("empty", 200, 0, None, None),
    "truncated": ("truncated", 200, 3, 3, "chunks"),
    "torn-frame": ("truncated", 200, 3, 3, "chunks"),
    "cut-chunk": ("truncated", 200, 1, 1, "chunks"),
    "reset": ("reset", 200, 1, 1, "chunks"),
    "closed-at-once": ("reset", None, 0, None, None),
    "error-first": ("in_band_error", 200, 0, None, None),
    "error-later": ("in_band_error", 200, 3, 3, "chunks"),
    "bad-json": ("bad_stream", 200, 1, 1, "chunks"),
    "bad-chunks": ("bad_stream", 200, 1, 1, "chunks"),
    "not-http": ("bad_stream", None, 0, None, None),
    "html": ("not_streamed", 200, 0, None, None),
    "json": ("not_streamed", 200, 0, None, None),
    "400": ("http_400", 400, 0, None, None),
    "401": ("http_401", 401, 0, None, None),
    "404": ("http_404", 404, 0, None, None),
    "429": ("http_429", 429, 0, None, None),
    "500": ("http_500", 500, 0, None, None),
    "redirect": ("http_302", 302, 0, None, None),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_every_kind_of_answer_has_its_outcome(server, name):
    """One request each; tokens that arrived before a failure are kept."""
    (record,), _ = drive(server.scripted(name))

    assert OUTCOMES[name] == (
        record.outcome, record.status, len(record.token_at_s), record.output_tokens, record.token_source,
    )  # fmt: skip
    assert (record.outcome == "ok") == (record.error is None) or name == "redirect"
    assert not record.censored


@pytest.mark.parametrize("name", [name for name, row in OUTCOMES.items() if row[2]])
def test_instants_are_in_order(server, name):
    """due, sent, connected, headers, first event, tokens, end: on one clock."""
    (record,), _ = drive(server.scripted(name))

    instants = [
        record.due_s, record.sent_s, record.connected_s, record.headers_s, record.first_event_s,
        record.first_token_s, *record.token_at_s, record.last_token_s, record.end_s,
    ]  # fmt: skip
    assert instants == sorted(instants)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("html", NotOpenai),
        ("empty", NotOpenai),
        ("unknown-model", UnknownModel),
        ("401", Refused),
        ("404", Refused),
        ("429", Refused),
        ("500", Refused),
    ],
)
def test_a_server_that_refuses_everything_ends_the_run(server, name, kind):
    """After three requests, not after all hundred."""
    records, aborted = drive(server.scripted(name), requests=100)

    assert kind is type(aborted)
    assert 3 == len(records)


def test_the_first_bytes_of_a_page_are_kept(server):
    """So that the reader sees what listens there."""
    (record,), _ = drive(server.scripted("html"))

    assert "Welcome to nginx" in record.error


def test_a_long_error_is_cut(server):
    """A stack trace does not fill the run folder."""
    body = b'{"error":{"message":"' + b"x" * 10_000 + b'"}}'
    head = b"HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    (record,), _ = drive(server.put("long", [head + body]))

    assert 300 == len(record.error)


def test_an_echoed_key_is_not_recorded(server):
    """Servers repeat the key in their error; it must not reach the record."""
    (record,), _ = drive(server.scripted("echoes-key"), secret="sk-very-secret-value")

    assert "[redacted]" in record.error
    assert "very-secret" not in record.error


def test_headers_of_the_target_are_sent_and_kept_secret(server):
    """An extra Authorization header wins over the key, and is redacted as well."""
    (record,), _ = drive(
        server.scripted("echoes-key"),
        secret="sk-one-key-12345",
        headers={"Authorization": "Token abc-987-def"},
    )

    assert "provided: [redacted]" in record.error


def test_finish_without_a_token_has_no_ttft(server):
    """It is an answer, but there was no first token."""
    (record,), _ = drive(server.scripted("finish-only"))

    assert latency.ttft(record) is None
    assert "stop" == record.finish_reason


def test_server_timings_reach_the_record(server):
    """llama.cpp tells its own prefill and decode times."""
    (record,), _ = drive(server.scripted("llamacpp"))

    assert (0.0015, 0.008) == (record.server_prefill_s, record.server_decode_s)
    assert 1 == record.token_at_s.index(record.first_answer_s)


def test_a_prompts_tail_is_not_the_first_token(server):
    """Sent at once, 80 ms before anything was generated: the naive TTFT would be a tenth of the truth."""
    records, _ = drive(server.scripted("prompt-tail"), requests=3)

    naive = max(latency.ttft(r) for r in records)
    cleaned = [latency.ttft(r) for r in latency.without_prompt_tail(records)]
    assert naive < 0.05
    assert all(0.07 < ttft < 0.2 for ttft in cleaned)


def test_a_dead_kept_alive_connection_is_redialled(server):
    """The server closes where a connection's second request was sent; no request fails."""
    records, _ = drive(server.scripted("stale"), requests=4)

    assert ["ok"] * 4 == [r.outcome for r in records]
    assert records[1].redialled
    assert not records[0].redialled
    assert all(r.connected_s is not None for r in records)


def test_a_server_that_keeps_no_connection_alive_is_soon_taken_at_its_word(server):
    """Three dead connections in a row, and each request makes its own: a connect costs less than a redial."""
    records, _ = drive(server.scripted("stale"), requests=12)

    assert 3 == sum(r.redialled for r in records)
    assert not any(r.reused for r in records[6:])


def test_a_server_that_closes_after_each_stream_costs_no_request(server):
    """llama.cpp announces keep-alive and closes; a pooled client loses a tenth of its requests to that."""
    records, _ = drive(server.scripted("closes-after-stream"), requests=40)

    assert ["ok"] * 40 == [r.outcome for r in records]


def test_connections_are_kept_alive(server):
    """The second request has no connect time: None, not zero."""
    records, _ = drive(server.url, requests=3)

    assert [False, True, True] == [r.reused for r in records]
    assert [False, True, True] == [r.connected_s is None for r in records]


def test_stream_options_are_left_out_for_a_server_that_refuses_them(server):
    """Asked once, dropped for the run; the refused attempt is in no statistics."""
    records, _ = drive(server.scripted("refuses-usage"), requests=3)

    assert ["ok"] * 3 == [r.outcome for r in records]
    assert all(r.sent_s - r.due_s < 0.05 for r in records)


def test_a_request_that_takes_too_long_is_a_timeout(server):
    """What had arrived is kept."""
    (record,), _ = drive(server.scripted("hangs"), timeout_s=0.3)

    assert "timeout" == record.outcome
    assert 1 == len(record.token_at_s)
    assert 0.25 < record.end_s - record.sent_s < 2.0


def test_a_connection_left_open_after_done_is_an_answer(server):
    """Complete is complete; the connection is given up after a second."""
    (record,), _ = drive(server.scripted("never-ends"))

    assert "ok" == record.outcome
    assert record.end_s - record.last_token_s < 3.0


def test_completions_are_driven_too(server):
    """The same stream with `text` for payload."""
    texts = [b'data: {"choices":[{"index":0,"text":"%s"}]}\n\n' % word for word in (b"a", b"b")]
    endpoint = server.put("texts", stream(*texts, FINISH, usage(2), DONE))
    (record,), _ = drive(endpoint, api="completions")

    assert ("ok", 2, "usage") == (record.outcome, record.output_tokens, record.token_source)


LINE_ENDS = {"lf": b"\n", "crlf": b"\r\n", "cr": b"\r"}


@pytest.mark.parametrize("end", LINE_ENDS)
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["", "bom"])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_framing_never_changes_the_answer(server, end, bom, size):
    """Line ends, BOM and the size of the writes: text, timing fields and usage stay right."""
    events = b"".join([ROLE, *TOKENS, FINISH, usage(3), DONE]).replace(b"\n", LINE_ENDS[end])
    raw = bom + events
    pieces = [chunk(raw[i : i + size]) for i in range(0, len(raw), size)]
    (record,), _ = drive(server.put("framed", [CHUNKED_HEAD, *pieces, LAST_CHUNK]))

    assert ("ok", "stop", "usage") == (record.outcome, record.finish_reason, record.token_source)
    assert 3 == len(record.token_at_s) == record.output_tokens
