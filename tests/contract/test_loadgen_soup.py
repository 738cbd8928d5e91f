"""Servers that answer anything at all: every request ends in time, as one known thing, in finite numbers."""

from __future__ import annotations

import asyncio
import json
import time
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.loadgen.summary import summarise
from perfdoctor.model import Load, RequestRecord, RunFacts, Scenario, Target, Wire
from tests.servers.truth_scripts import CHUNKED_HEAD, DONE, GOOD, JSON, LAST_CHUNK, WHOLE, chunk, frame, head

KEY = "sk-soup-0123456789"
REQUESTS, USERS, TIMEOUT_S = 3, 2, 0.1
OUTCOMES = {
    "ok", "empty", "truncated", "reset", "in_band_error", "bad_stream", "not_streamed", "timeout", "connect",
    "cancelled",
}  # fmt: skip

HEADS = st.sampled_from([
    CHUNKED_HEAD, CHUNKED_HEAD, CHUNKED_HEAD, head(), head(version="1.0"), head(200, JSON), head(kind=""),
    head(204), head(100), head(304), head(500), head(extra="Content-Length: 40\r\n"),
    head(404, JSON, "Content-Length: 3\r\n"),
    head(extra="Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"),
    head(extra="Transfer-Encoding: gzip, chunked\r\n"), b"HTTP/2.0 200 OK\r\n\r\n",
    b"HTTP/1.1 999 Odd\r\n\r\n", b"HTTP/1.1 200\r\n\r\n",
    b"ICY 200 OK\r\n\r\n", b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n: nameless\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: \xff\xfe\0\r\nContent-Type: \xff\r\n\r\n",
    b'HTTP/1.1 302 X\r\nLocation: http://[::\r\nSet-Cookie: a="\x01; b\r\nContent-Length: 0\r\n\r\n',
    b"HTTP/1.1 429 X\r\nRetry-After: inf\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
    f"HTTP/1.1 401 {KEY}\r\nContent-Type: text/plain\r\nContent-Length: {len(KEY)}\r\n\r\n{KEY}".encode(),
])  # fmt: skip
VALUES = st.sampled_from(
    ["1e400", "-1", "NaN", "Infinity", "1e308", "99999999999999999999", "true", "null", '"x"', "[]", "{}",
     "0.5", "7", "-0", '"\\ud800"', json.dumps(KEY)],
)  # fmt: skip
ODD_FRAME = (
    'data: {"choices":[{"index":%s,"delta":{"content":%s,"reasoning":%s},"finish_reason":%s,"logprobs":%s}],'
    '"usage":{"prompt_tokens":%s,"completion_tokens":%s,"prompt_tokens_details":{"cached_tokens":%s}},'
    '"timings":{"prompt_ms":%s,"predicted_ms":%s},"error":%s}\n\n'
)
EVENTS = st.one_of(
    st.sampled_from([*GOOD, b": comment\n\n", b"data: " + b"[" * 2000 + b"\n\n", DONE, WHOLE]),
    st.tuples(*[VALUES] * 10, st.sampled_from(["null", "false", '"x"'])).map(
        lambda v: (ODD_FRAME % v).encode()
    ),
    st.binary(max_size=40).map(lambda raw: b"data: " + raw + b"\n\n"),
    st.sampled_from(["x", 7, [1], {"message": None}, {"message": f"\x1b[31m\u202e {KEY}"}]).map(
        lambda error: frame({"error": error})
    ),
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[bytes], str]:
    """(writes, how the connection ends): mostly HTTP, sometimes with a byte changed or cut off, or noise."""
    ends = draw(st.sampled_from(["close", "close", "close", "reset", "open"]))
    top, body = draw(HEADS), draw(st.lists(EVENTS, max_size=5))
    if b"chunked" in top and draw(st.integers(0, 9)):
        body = [*map(chunk, body), *([LAST_CHUNK] if draw(st.integers(0, 3)) else [])]
    raw = bytearray(
        draw(st.binary(min_size=1, max_size=99)) if not draw(st.integers(0, 9)) else top + b"".join(body)
    )
    if draw(st.booleans()) and draw(st.booleans()):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    if draw(st.booleans()) and draw(st.booleans()):
        del raw[draw(st.integers(0, len(raw))) :]
    cuts = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=4)))
    edges = [0, *cuts, len(raw)]
    return [bytes(raw[a:b]) for a, b in pairwise(edges)], ends


async def served(writes: list[bytes], ends: str, conduct: Any) -> Any:
    """What `conduct(url)` returns while each request is answered with these bytes."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (n for n in asked.lower().split(b"\r\n") if n.startswith(b"content-length:")), b":0"
                )
                await reader.readexactly(int(length.partition(b":")[2]))
                for write in writes:
                    writer.write(write)
                    await writer.drain()
                if ends == "reset":
                    writer.transport.abort()
                if ends != "open":
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    try:
        return await conduct(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()


def drive(writes: list[bytes], ends: str, **target: Any) -> tuple[list[RequestRecord], bool]:
    """The records, and whether the driver gave the server up."""
    records: list[RequestRecord] = []

    async def conduct(url: str) -> bool:
        load = Load(concurrency=USERS, timeout_s=TIMEOUT_S)
        async with Driver(Target(endpoint=url, **target), load, Clock(), records.append, KEY) as driver:
            await driver.run_stage(Stage("steady", USERS, requests=REQUESTS))
            return driver.aborted is not None

    return records, loop.run(served(writes, ends, conduct))


def strictly(text: bytes) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def check(record: RequestRecord) -> None:
    """One known thing, in order, whole in JSON, with no key in what is shown."""
    assert record.outcome in OUTCOMES or record.outcome == f"http_{record.status}"
    assert (record.outcome == "ok") == (record.error is None) or record.outcome.startswith("http_")
    instants = [
        record.due_s, record.sent_s, record.headers_s, record.first_event_s, record.first_token_s,
        *record.token_at_s, record.last_token_s, record.end_s,
    ]  # fmt: skip
    known = [at for at in instants if at is not None]
    assert known == sorted(known)
    assert 0 <= (record.output_tokens or 0) < 10**9 and 0 <= (record.prompt_tokens or 0) < 10**9
    written = msgspec.json.encode(record)
    strictly(written)
    assert record == msgspec.json.decode(written, type=RequestRecord)
    assert KEY not in f"{record.error} {record.first_text}"


@pytest.mark.parametrize("transport", ["raw", "aiohttp", "httpx"])
@settings(max_examples=20, deadline=None)
@given(
    answer=answers(),
    api=st.sampled_from(["chat", "chat", "completions", "responses", "http"]),
    stream=st.booleans(),
)
def test_any_answer_ends_as_one_known_thing(transport, answer, api, stream):
    """Nothing is lost, nothing raises, nothing outlives its limit; and the counts add up."""
    began_s = time.monotonic()
    records, gave_up = drive(*answer, api=api, stream=stream or api == "http", wire=Wire(transport=transport))
    took_s = time.monotonic() - began_s

    assert took_s < 8.0
    assert len(records) == REQUESTS or (gave_up and len(records) < REQUESTS)
    for record in records:
        check(record)
    found = summarise(RunFacts(scenario=Scenario(load=Load(concurrency=USERS))), "complete", records)
    strictly(msgspec.json.encode(found))
    counts = found.requests
    assert len(records) == counts.total == counts.ok + sum(counts.failed.values()) + counts.censored
