"""However the network cuts an answer into reads, the same comes out of our own connection."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols.chat import PROTOCOL
from perfdoctor.loadgen.reading import StreamReader
from perfdoctor.loadgen.transports._connection import BARREN_BYTES, Connection, Died
from perfdoctor.loadgen.transports._heads import Heads
from perfdoctor.loadgen.transports._transport import Failure
from tests.servers.truth_scripts import CHUNKED_HEAD, GOOD, JSON, LAST_CHUNK, head, usage, whole


class Socket:
    """The transport of a connection whose bytes come from the test."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.aborted = False

    def write(self, message: bytes) -> None:
        self.written.append(message)

    def abort(self) -> None:
        self.aborted = True

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def get_extra_info(self, name: str) -> None:
        return None  # plain, not TLS


class Sink:
    """Everything of one answer: its events are read as a stream, its bytes are kept."""

    def __init__(self) -> None:
        self.heads: list[tuple[int, str | None]] = []
        self.body = b""
        self.answer = Answer()
        self._reader = StreamReader(PROTOCOL.read, self.answer)

    def on_head(self, status: int, headers: Any, at_ns: int) -> Any:
        self.heads.append((status, headers.get("content-type")))
        return self._take

    def _take(self, read: bytes, at_ns: int) -> bool:
        self.body += read
        return self._reader.feed(read, at_ns)

    def told(self) -> Any:
        answer = self.answer
        return (
            self.heads,
            self.body,
            len(answer.token_ns),
            answer.finish_reason,
            answer.done,
            answer.usage_counts(),
        )


def answers(*streams: list[bytes], closed: bool = False) -> list[tuple[Any, str, bool]]:
    """What a connection made of one answer after the other, each given as its reads."""

    async def conduct() -> list[tuple[Any, str, bool]]:
        connection = Connection(Heads())
        connection.connection_made(Socket())  # type: ignore[arg-type]
        found = []
        for reads in streams:
            sink = Sink()
            asking = asyncio.ensure_future(connection.ask(b"GET", sink, None))
            await asyncio.sleep(0)
            for read in reads:
                connection.data_received(read)
            if closed:
                connection.connection_lost(None)
            try:
                await asyncio.wait_for(asking, 5)
                found.append((sink.told(), "ok", connection.reusable))
            except Failure as failure:
                found.append((sink.told(), failure.outcome, connection.reusable))
            except Died:
                found.append((sink.told(), "died", connection.reusable))
        return found

    return asyncio.run(conduct())


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[a:b] for a, b in itertools.pairwise(edges)]


def chunked(body: bytes, sizes: list[int]) -> bytes:
    framed, rest = b"", body
    for size in sizes:
        piece, rest = rest[:size], rest[size:]
        framed += b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
    return CHUNKED_HEAD + framed + (b"%x\r\n%b\r\n" % (len(rest), rest) if rest else b"") + LAST_CHUNK


BODY = b"".join([*GOOD[:-2], usage(3), GOOD[-1]])
PLACES = st.lists(st.integers(0, 2000), max_size=12)
RIGHT = ([(200, "text/event-stream")], BODY, 3, "stop", True, (7, 3, None))


@given(st.lists(st.integers(1, 90), max_size=20), PLACES)
def test_chunks_and_reads_may_be_cut_anywhere(sizes, places):
    """Two framings at once, each cut without regard to the other or to the events."""
    assert [(RIGHT, "ok", True)] == answers(cut(chunked(BODY, sizes), places))


@given(PLACES, PLACES)
def test_a_kept_alive_connection_begins_anew(first, second):
    """An answer in one piece, a stream and the first again: each is what it is without the others."""
    piece = b"".join(map(bytes, whole(200, JSON, b'{"a": 1}')))
    told = ([(200, JSON)], b'{"a": 1}', 0, None, False, (None, None, None))

    found = answers([piece], cut(piece, first), [piece], cut(chunked(BODY, []), second), [piece])

    assert [(told, "ok", True)] * 3 + [(RIGHT, "ok", True), (told, "ok", True)] == found


@given(st.lists(st.binary(max_size=40), max_size=4), PLACES)
def test_hostile_bytes_end_in_a_failure_class(pieces, places):
    """Whatever comes, an answer ends, and the same way wherever it was cut."""
    stream = b"".join([b"HTTP/1.1 200 OK\r\n", *pieces])
    plain = answers([stream], closed=True)

    assert plain[0][1] in ("ok", "truncated", "bad_stream")
    assert [row[1] for row in plain] == [row[1] for row in answers(cut(stream, places), closed=True)]


@given(PLACES)
def test_a_body_until_the_connection_closes(places):
    """HTTP/1.0 as mlx-lm speaks it, with comments between the events; the connection is not used again."""
    body = b"".join(b": ping\n\n" + piece for piece in GOOD)
    stream = head(version="1.0") + body

    told, outcome, reusable = answers(cut(stream, places), closed=True)[0]

    assert ("ok", False) == (outcome, reusable)
    assert (3, "stop", True) == told[2:5]


def test_an_answer_of_the_same_head_is_not_parsed_again():
    """Otherwise the recognition of heads would be dead weight; a longer one goes to the parser."""
    heads = Heads()
    first = b"".join(map(bytes, whole(200, JSON, b"12345678")))
    heads.learn(first, 8, 200, {"content-length": "8"})

    assert heads.match(first.replace(b"12345678", b"abcdefgh"))
    assert heads.match(first + b"HTTP") is None
    assert heads.match(first[:-1]) is None
    assert heads.match(first.replace(b"200", b"201")) is None


@pytest.mark.parametrize("size", [BARREN_BYTES - 1000, BARREN_BYTES + 2**16])
def test_memory_for_a_head_is_bounded(size):
    """On both sides of the limit, in many reads; the last of them may go beyond it."""
    stream = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Long: " + b"x" * size + b"\r\n\r\n"
    reads = [stream[i : i + 65536] for i in range(0, len(stream), 65536)]

    assert ("ok" if size < BARREN_BYTES else "bad_stream") == answers(reads)[0][1]


def test_a_connection_that_speaks_unasked_is_given_up():
    """Its bytes would be taken for the next answer."""
    piece = b"".join(map(bytes, whole(200, JSON, b"{}")))

    assert [("ok", False)] == [row[1:] for row in answers([piece, piece])]


def test_nothing_before_the_end_is_a_death_and_not_a_failure():
    """It may be redialled: the server cannot have begun to answer."""
    assert ["died"] == [row[1] for row in answers([], closed=True)]
