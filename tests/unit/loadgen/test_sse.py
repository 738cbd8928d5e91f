"""The event-stream grammar, row by row, and the promise that reads may be cut anywhere."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdoctor.loadgen.sse import MAX_EVENT_BYTES, EventTooLong, SseParser

TOKEN = b'{"choices":[{"delta":{"content":"hi"}}]}'
USAGE = b'{"choices":[],"usage":{"completion_tokens":1}}'

# name -> (bytes of the stream, data of its events); the rows of the conformance matrix in the reference
ROWS: dict[str, tuple[bytes, list[bytes]]] = {
    "lf": (b"data: " + TOKEN + b"\n\ndata: " + USAGE + b"\n\ndata: [DONE]\n\n", [TOKEN, USAGE, b"[DONE]"]),
    "crlf": (b"data: " + TOKEN + b"\r\n\r\ndata: [DONE]\r\n\r\n", [TOKEN, b"[DONE]"]),
    "cr only": (b"data: " + TOKEN + b"\r\rdata: [DONE]\r\r", [TOKEN, b"[DONE]"]),
    "mixed line ends": (b"data: a\r\ndata: b\rdata: c\n\r\ndata: d\n\n", [b"a\nb\nc", b"d"]),
    "no space after the colon": (b"data:" + TOKEN + b"\n\ndata:[DONE]\n\n", [TOKEN, b"[DONE]"]),
    "two spaces keep one": (b"data:  x\n\n", [b" x"]),
    "utf-8": ('data: {"t":"déjà 🙂"}\n\n'.encode(), ['{"t":"déjà 🙂"}'.encode()]),
    "raw U+2028 and U+0085": (
        'data: {"t":"a\u2028b\u0085c"}\n\n'.encode(),
        ['{"t":"a\u2028b\u0085c"}'.encode()],
    ),
    "comment block": (b": ping\n\ndata: x\n\n: ping\n\n", [b"x"]),
    "comment directly before data": (b": keepalive 13/15\ndata: x\n\n", [b"x"]),
    "event and id lines": (b"event: message\nid: 7\nretry: 10\ndata: x\n\n", [b"x"]),
    "unknown field and line without a colon": (b"dataset: no\nnonsense\ndata: x\n\n", [b"x"]),
    "json over two data lines": (b'data: {"a":\ndata: 1}\n\n', [b'{"a":\n1}']),
    "data without a colon": (b"data\ndata\n\n", [b"\n"]),
    "empty data": (b"data:\n\n", [b""]),
    "last event without blank line": (b"data: x\n\ndata: y\n", [b"x", b"y"]),
    "last event without line end": (b"data: x\n\ndata: y", [b"x", b"y"]),
    "bom": (b"\xef\xbb\xbfdata: x\n\n", [b"x"]),
    "bom only once": (b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\ndata: y\n\n", [b"y"]),
    "bom later is no bom": (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [b"x"]),
    "payload looks like a comment": (b"data: : keepalive\n\n", [b": keepalive"]),
    "text holds an escaped frame": (b'data: {"t":":\\n\\n"}\n\n', [b'{"t":":\\n\\n"}']),
    "event without data": (b"event: ping\n\ndata: x\n\n", [b"x"]),
    "many blank lines": (b"\n\n\ndata: x\n\n\n\n\r\r\n", [b"x"]),
    "nothing": (b"", []),
}


def parse(*reads: bytes) -> list[bytes]:
    parser = SseParser()
    events = [event for read in reads for event in parser.feed(read)]
    return events + parser.close()


@pytest.mark.parametrize("name", ROWS)
def test_every_row_of_the_grammar(name):
    """A stream in one read gives exactly its events."""
    stream, expected = ROWS[name]

    assert expected == parse(stream)


@pytest.mark.parametrize("name", ROWS)
def test_byte_by_byte(name):
    """The same stream, one byte a read, splits every CRLF, BOM and UTF-8 sequence."""
    stream, expected = ROWS[name]

    assert expected == parse(*(stream[i : i + 1] for i in range(len(stream))))


LINES = st.sampled_from([
    b"data: x", b"data:y", b"data", b": c", b"event: e", b"", b"data: " + TOKEN, b"\xef\xbb\xbf",
    b"data: [DONE]",
])  # fmt: skip
STREAMS = st.one_of(
    st.sampled_from([stream for stream, _ in ROWS.values()]),
    st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"]))).map(
        lambda lines: b"".join(line + end for line, end in lines)
    ),
    st.binary(max_size=60),
)


@given(STREAMS, st.lists(st.integers(0, 400), max_size=8))
def test_reads_may_be_cut_anywhere(stream, cuts):
    """How the network cuts the bytes into reads never changes the events."""
    edges = sorted({0, len(stream), *(c % (len(stream) + 1) for c in cuts)})

    assert parse(stream) == parse(*(stream[a:b] for a, b in itertools.pairwise(edges)), b"")


@given(st.lists(st.text(max_size=20), max_size=10))
def test_json_payloads_survive(texts):
    """Whatever text a token holds, its JSON arrives byte for byte, and one event a read."""
    payloads = [json.dumps({"t": text}, ensure_ascii=False).encode() for text in texts]

    assert payloads == parse(b"data: start\n\n", *(b"data: " + p + b"\n\n" for p in payloads))[1:]


def test_cr_ends_an_event_at_once():
    """A stream in CR does not wait for the next read to learn whether LF follows."""
    parser = SseParser()

    assert [b"x"] == parser.feed(b"data: x\r\r")
    assert [] == parser.feed(b"\n")
    assert [b"y"] == parser.feed(b"data: y\n\n")


def test_an_event_of_16_mib_passes_and_a_longer_one_is_refused():
    """The cap bounds memory on both sides of the limit, whether in one line or in many."""
    line = b"data: " + b"x" * (MAX_EVENT_BYTES - 6)

    assert [line[6:]] == parse(line, b"\n\n")
    with pytest.raises(EventTooLong):
        parse(line, b"y")
    with pytest.raises(EventTooLong):
        parse(*(line[: 2**20] + b"\n" for _ in range(17)))


def test_the_cap_counts_an_event_not_the_stream():
    """A long stream of small events, comments or blank lines never meets the cap."""
    megabyte = b"data: " + b"x" * 2**20 + b"\n\n"

    assert 40 == len(parse(*(megabyte for _ in range(40))))
    assert [b"x"] == parse(*(b":" + b"x" * 2**20 + b"\n" for _ in range(40)), b"data: x\n\n")
