"""The shortcut of the hot path changes nothing but the cost."""

import contextlib
import itertools
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols.chat import PROTOCOL
from perfdoctor.loadgen.reading import StreamReader, Template, Unreadable
from perfdoctor.loadgen.sse import SseParser


def shortcut(reads):
    answer = Answer()
    reader = StreamReader(PROTOCOL.read, answer)
    for at_ns, read in enumerate(filter(None, reads)):
        if reader.feed(read, at_ns):
            return answer
    reader.close()
    return answer


def plainly(reads):
    """The same without any shortcut."""
    answer, parser = Answer(), SseParser()
    for read in filter(None, reads):
        for event in parser.feed(read):
            PROTOCOL.read(event, 0, answer)
        if answer.done or answer.error is not None:
            return answer
    with contextlib.suppress(msgspec.DecodeError):  # cut off within a frame
        for event in parser.close():
            PROTOCOL.read(event, 0, answer)
    return answer


def facts(answer):
    return (
        len(answer.token_ns), answer.first_answer_ns is None, answer.first_text, *answer.beside_tokens(),
        answer.usage_counts(),
    )  # fmt: skip


def frame(compact=True, finish=None, more=None, **delta):
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    separators = (",", ":") if compact else (", ", ": ")
    value = {"id": "c-1", "choices": [choice], **(more or {})}
    return b"data: " + json.dumps(value, separators=separators).encode() + b"\n\n"


TEXTS = st.sampled_from(
    ["a", "the", " dog", "", "c-1", "id", "stop", 'q"', "\\", "\n", "é", "\u2028", "x\r", "null"]
)
EVENTS = st.one_of(
    TEXTS.map(lambda text: frame(content=text)),
    TEXTS.map(lambda text: frame(reasoning=text)),
    TEXTS.map(lambda text: frame(compact=False, content=text)),
    TEXTS.map(lambda text: frame(content=text, more={"usage": {"completion_tokens": len(text)}})),
    TEXTS.map(lambda text: frame(content=text, more={"note": text})),
    TEXTS.map(lambda text: frame(content=text).replace(b"\n", b"\r\n")),
    TEXTS.map(lambda text: b": ping\n" + frame(content=text)),
    st.sampled_from([
        frame(role="assistant", content=""), frame(finish="stop"), b": ping\n\n", b"data: : keepalive\n\n",
        frame(content="last", finish="length"), frame(tool_calls=[{"index": 0}]), b"\r", b"\n", b"data:",
    ]),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=12), st.lists(st.integers(1, 400), max_size=3))
def test_same_answer_with_and_without_the_shortcut(events, cuts):
    """Frames of any kind in any order, mostly one a read, some cut in two or joined."""
    reads = list(events)
    for cut in cuts:
        index = cut % max(1, len(reads))
        if index < len(reads):
            reads[index : index + 2] = split(b"".join(reads[index : index + 2]), cut)
    try:
        expected = facts(plainly(reads))
    except msgspec.DecodeError:
        with pytest.raises(Unreadable):
            shortcut(reads)
        return

    assert expected == facts(shortcut(reads))


def split(block, cut):
    middle = cut % (len(block) + 1)
    return [block[:middle], block[middle:]]


def test_like_frames_are_recognised_without_parsing():
    """Otherwise the shortcut would be dead weight."""
    parsed = []

    def read_event(event, at_ns, answer):
        parsed.append(event)
        PROTOCOL.read(event, at_ns, answer)

    answer = Answer()
    reads = [frame(role="assistant"), *(frame(content=f"t{n}") for n in range(20)), frame(finish="stop")]
    reader = StreamReader(read_event, answer)
    for read in reads:
        reader.feed(read, 0)

    assert 20 == len(answer.token_ns)
    assert 3 == len(parsed)


def test_frames_that_never_repeat_are_soon_left_alone():
    """A server that changes more than the text costs a bounded number of attempts."""
    template = Template()
    learnt = 0
    for tokens in range(100):
        before = template.before
        template.learn(b'data: {"n":%d,"t":"x"}\n\n' % tokens, "x", tokens)
        learnt += template.before != before

    assert learnt <= 10


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (b'data: {"id":"x","t":"x"}\n\n', "x"),
        (b'data: {"t":"\\u0078","x":1}\n\n', "x"),
        (b'data: {"t":"\xc3\xa9"}\n\n', "é"),
        (b'data: {"t":[1]}\n\n', [1]),
        (b'data: {"t":"a\\"b"}\n\n', 'a"b'),
    ],
    ids=["twice", "escaped", "not plain", "no text", "a quote inside"],
)
def test_a_frame_whose_text_cannot_be_located_teaches_nothing(read, text):
    """Then the parser reads every frame, as it must."""
    template = Template()

    template.learn(read, text, 5)

    assert not read.startswith(template.before)


def test_all_events_of_one_read_share_its_stamp():
    """The instant at which the bytes came is one instant."""
    answer = shortcut([frame(content="a") + frame(content="b"), frame(content="c")])

    first, second, third = answer.token_ns
    assert first == second < third


def test_stamps_never_go_back():
    """Whatever way a read takes."""
    answer = shortcut([frame(content=f"t{n}") + (b": x\n\n" if n % 3 else b"") for n in range(30)])

    assert 30 == len(answer.token_ns)
    assert all(a <= b for a, b in itertools.pairwise(answer.token_ns))


def test_half_a_frame_at_the_end_is_no_error():
    """The connection was cut: the driver calls it truncated."""
    answer = shortcut([frame(content="a"), b'data: {"choi'])

    assert 1 == len(answer.token_ns)
    assert not answer.complete
