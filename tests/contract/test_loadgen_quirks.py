"""What real servers do to a client that believes them, byte for byte; the figures must stay right."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator
from typing import Any

import pytest

from perfdoctor import latency
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.loadgen.summary import summarise
from perfdoctor.model import Load, LoadSummary, Prompts, RequestRecord, RunFacts, Scenario, Target, Wire
from tests.servers import truth
from tests.servers.truth import Truth
from tests.servers.truth_scripts import (
    CHUNKED_HEAD,
    CLOSE,
    DONE,
    FINISH,
    GOOD,
    LAST_CHUNK,
    ROLE,
    TOKENS,
    Step,
    chunk,
    delta,
    frame,
    head,
    stream,
    usage,
)

both = pytest.mark.parametrize("transport", ["raw", "aiohttp"])


@pytest.fixture(scope="module")
def server() -> Iterator[Truth]:
    with truth.serving("--ttft-ms", "20", "--gap-ms", "5", "--tokens", "4") as running:
        yield running


def drive(
    endpoint: str,
    requests: int = 1,
    users: int = 1,
    transport: str = "raw",
    prompts: Prompts | None = None,
    **target: Any,
) -> tuple[list[RequestRecord], LoadSummary]:
    """The records of a load, and what is made of them."""
    records: list[RequestRecord] = []
    load = Load(concurrency=users, timeout_s=10.0, prompts=prompts or Prompts())

    async def conduct() -> None:
        where = Target(endpoint=endpoint, wire=Wire(transport=transport), **target)
        async with Driver(where, load, Clock(), records.append) as driver:
            await driver.run_stage(Stage("steady", users, requests=requests))

    loop.run(conduct())
    return records, summarise(RunFacts(scenario=Scenario(load=load)), "complete", records)


# ------------------------------------------------------------------------------ llama-cpp-python

CUT = [*TOKENS[:2], DONE]  # it sends [DONE] when the next request takes the model, and no reason


@both
@pytest.mark.parametrize("tokens", [[], TOKENS[:2]], ids=["before its first token", "in the middle"])
def test_an_answer_dropped_for_the_next_one_is_no_success(server, transport, tokens):
    """HTTP 200 and [DONE], yet neither finish_reason nor usage: half answers would look fast."""
    (record,), _ = drive(server.put("dropped", stream(ROLE, *tokens, DONE)), transport=transport)

    assert ("truncated" if tokens else "empty", len(tokens)) == (record.outcome, len(record.token_at_s))


def test_dropped_answers_are_in_no_latency(server):
    """Three of four, as at four users of that server: the mean length of what is left is a whole answer's."""
    server.put("cut", stream(ROLE, *CUT))
    _, found = drive(server.scripted("cut+cut+cut+good"), requests=8)

    assert ({"truncated": 6}, 2) == (found.requests.failed, found.requests.ok)
    assert (2, 2) == (found.ttft.n, found.e2e.n)
    assert 8 == found.requests.total


@pytest.mark.parametrize("ends", [[FINISH, DONE], [FINISH], [usage(3), DONE]], ids=["both", "reason", "bill"])
def test_an_answer_that_says_it_is_whole_is_one(server, ends):
    """By its finish_reason; a server that tells none still sends its usage at the end."""
    (record,), _ = drive(server.put("whole-one", stream(ROLE, *TOKENS, *ends)))

    assert ("ok", 3) == (record.outcome, record.output_tokens)


# ------------------------------------------------------------------------------ vLLM beside busy cores


@pytest.mark.parametrize(
    ("told", "pace_s"), [(False, 0.280 / 63), (True, 0.280 / 56)], ids=["usage", "chunks"]
)
def test_tokens_merged_into_few_chunks_leave_their_pace_right(server, told, pace_s):
    """Eight a chunk every 40 ms are 5 ms a token. Where the first chunk's are not known it counts as one."""
    endpoint = server.timed(ttft_ms=20, gap_ms=40, tokens=64, chunk=8)
    _, found = drive(endpoint, requests=4, users=2, prompts=Prompts(count_per_chunk=told))

    assert pace_s == pytest.approx(found.tpot.p50, rel=0.1)
    assert 0.040 == pytest.approx(found.gap.p50, rel=0.1)  # named a pause, never an inter-token latency
    assert (0.005 == pytest.approx(found.itl.p50, rel=0.1)) if told else found.itl is None
    assert any("8.0 per chunk" in note for note in found.notes)


def test_a_whole_answer_in_one_burst_is_told_to_be_one(server):
    """The engine had its first token long before the starved server sent anything."""
    merged = b"".join(map(chunk, [ROLE, *TOKENS * 8, FINISH, usage(24), DONE]))
    _, found = drive(server.put("burst", [CHUNKED_HEAD, 0.08, merged + LAST_CHUNK]), requests=3)

    assert 0.08 < found.ttft.p50 <= found.e2e.p50 < 0.3
    assert any("batches the stream" in note for note in found.notes)


# ------------------------------------------------------------------------------ transformers serve


def test_sixteen_users_of_a_serial_server_that_echoes_the_prompts_tail(server):
    """The echo is there at once, an answer takes 30 ms: half of the users wait for eight of them."""
    tail = [CHUNKED_HEAD, chunk(ROLE + delta(reasoning_content="\n"))]
    tokens = [step for text in "abc" for step in (chunk(delta(reasoning_content=text)), 0.01)]
    places: list[list[Step]] = [
        [*tail, 0.03 * waits, *tokens, chunk(delta("length") + usage(3)), LAST_CHUNK]
        for waits in range(1, 17)
    ]
    for number, steps in enumerate(places):
        server.put(f"echo{number}", steps)
    records, found = drive(server.scripted("+".join(f"echo{n}" for n in range(16))), requests=16, users=16)

    naive = statistics.median(latency.ttft(r) for r in records)
    assert naive < 0.06
    assert 0.24 == pytest.approx(found.ttft.p50, abs=0.06)
    assert found.gap.max < 0.1
    assert any("16 chunks with the prompt's own tail" in note for note in found.notes)


# ------------------------------------------------------------------------------ mlx-lm

MLX = [
    frame({"object": "chat.completion.chunk", "choices": [
        {"index": 0, "delta": {"role": "assistant", name: text}, "finish_reason": None}
    ]})
    for name, text in (("content", ""), ("reasoning", "hm"), ("content", "one"), ("content", " two"))
]  # fmt: skip
MLX_ENDS = [
    delta("stop", role="assistant", content=""),
    usage(3, object="chat.completion"),
    DONE,
]


@both
def test_a_stream_of_http_1_0_with_comments_is_read(server, transport):
    """No length, no chunks: the connection's end ends it. Comments tell of the prefill, and are no token."""
    prefill = [step for n in (5, 10, 15) for step in (b": keepalive %d/15\n\n" % n, 0.03)]
    endpoint = server.put("mlx", [head(version="1.0"), *prefill, *MLX, *MLX_ENDS, CLOSE])
    records, _ = drive(endpoint, requests=2, transport=transport)

    assert [("ok", 3, 3, "usage")] * 2 == [
        (r.outcome, len(r.token_at_s), r.output_tokens, r.token_source) for r in records
    ]
    assert all(0.09 <= latency.ttft(r) <= latency.ttfa(r) for r in records)
    assert not any(r.reused or r.redialled for r in records)


@both
@pytest.mark.parametrize(("events", "outcome"), [(4, "truncated"), (5, "ok")], ids=["before", "after"])
def test_a_stream_of_http_1_0_that_breaks_off_is_told_from_its_end(server, transport, events, outcome):
    """Where the end of the connection is the end of the body, only the events say whether it was all."""
    whole = [*MLX, *MLX_ENDS]
    (record,), _ = drive(
        server.put("mlx-cut", [head(version="1.0"), *whole[:events], CLOSE]), transport=transport
    )

    assert outcome == record.outcome


# ------------------------------------------------------------------------------ clocks, sizes, ways to answer


@pytest.mark.parametrize(("prompt_ms", "kept"), [(1.5, True), (776538458.634, False)])
def test_a_server_cannot_have_taken_longer_than_its_answer(server, prompt_ms, kept):
    """Its clock or counter went wrong; nothing may be concluded from that."""
    timings = {"prompt_ms": prompt_ms, "predicted_ms": 4}
    (record,), _ = drive(server.put("clock", stream(*GOOD[:-2], usage(3, timings=timings), DONE)))

    assert kept == (record.server_prefill_s is not None) == (record.server_decode_s is not None)


@both
def test_long_prompts_and_long_answers_keep_all_users_busy(server, transport):
    """A megabyte each way, where a client with small buffers falls behind and blames the server."""
    big = [chunk(delta(content="x" * 2**17)) for _ in range(8)]
    endpoint = server.put("big", [CHUNKED_HEAD, 0.1, *big, chunk(FINISH + usage(8) + DONE), LAST_CHUNK])
    prompts = Prompts(input_tokens=150_000)
    records, found = drive(endpoint, requests=12, users=4, transport=transport, prompts=prompts)

    assert ["ok"] * 12 == [r.outcome for r in records]
    assert min(len(told["body"]) for told in server.told().values() if len(told["body"]) > 2**18) > 2**19
    assert min(r.body_bytes for r in records) > 2**20
    assert 3.0 < found.rates.in_flight_mean <= 4.0
    assert found.ttft.p50 < 0.5


@both
@pytest.mark.parametrize(
    ("answer", "outcome", "tokens"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n", "ok", 3),
        (b"HTTP/1.1 102 Processing\r\n\r\n" * 5, "ok", 3),
    ],
)
def test_interim_answers_are_not_the_answer(server, transport, answer, outcome, tokens):
    """A server or gateway may send any number of them first; the head that counts comes later."""
    (record,), _ = drive(server.put("interim", [answer, 0.05, *stream(*GOOD)]), transport=transport)

    assert (outcome, tokens, 200) == (record.outcome, len(record.token_at_s), record.status)
    assert record.headers_s - record.sent_s >= 0.05


@both
@pytest.mark.parametrize("coding", ["Content-Encoding: gzip", "Content-Encoding: br"])
def test_a_compressed_refusal_is_named_and_not_shown(server, transport, coding):
    """Though none was asked for: its bytes would fill the report with noise."""
    body = b"\x1f\x8b\x08\0garbage\xff\x02"
    steps = [head(500, "application/json", f"{coding}\r\nContent-Length: {len(body)}\r\n") + body]
    (record,), _ = drive(server.put("compressed", steps), transport=transport)

    assert ("http_500", f"the body is compressed ({coding[18:]})") == (record.outcome, record.error)


@both
@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("X-Policy: " + "y" * 20_000, "ok"),
        ("X-Folded: one\r\n two", "ok"),
        ("Content-Encoding: ", "ok"),
        ("Content-Encoding: Identity", "ok"),
        ("Content-Encoding: deflate", "bad_stream"),
    ],
    ids=["long", "folded", "nothing", "identity", "deflate"],
)
def test_odd_lines_of_a_head_do_not_cost_the_answer(server, transport, line, outcome):
    """Gateways send them; both clients agree."""
    endpoint = server.put(
        "odd", [head(extra=f"{line}\r\nTransfer-Encoding: chunked\r\n"), *stream(*GOOD)[1:]]
    )
    (record,), _ = drive(endpoint, transport=transport)

    assert outcome == record.outcome, record.error


@both
def test_what_follows_the_end_mark_is_no_part_of_the_answer(server, transport):
    """In the same read or in a later one."""
    late = b"".join([*GOOD, TOKENS[0], frame({"error": {"message": "too late"}})])
    (at_once,), _ = drive(server.put("late", [CHUNKED_HEAD, chunk(late), LAST_CHUNK]), transport=transport)
    (later,), _ = drive(server.put("late", stream(*GOOD, TOKENS[0])), transport=transport)

    assert [("ok", 3)] * 2 == [(r.outcome, len(r.token_at_s)) for r in (at_once, later)]


def test_gaps_are_one_fewer_than_tokens(server):
    """Two chunks have one pause, one has none; the time to the first is in neither."""
    (pair,), _ = drive(server.put("pair", stream(ROLE, *TOKENS[:2], FINISH, usage(2), DONE)))
    (single,), _ = drive(server.scripted("one-token"))

    assert [b - a for a, b in itertools.pairwise(pair.token_at_s)] == list(latency.gaps(pair))
    assert () == latency.gaps(single)
    assert (None, None) == (latency.tpot(single), latency.user_tokens_per_s(single))
    assert latency.ttft(single) > 0
