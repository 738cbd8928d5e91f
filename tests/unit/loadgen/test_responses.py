"""The Responses API: typed events and whole answers."""

import msgspec
import pytest

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols._protocol import Ask
from perfdoctor.loadgen.protocols.responses import PROTOCOL

USAGE = {
    "input_tokens": 7,
    "output_tokens": 3,
    "input_tokens_details": {"cached_tokens": 5},
    "output_tokens_details": {"reasoning_tokens": 2},
}


def read(*events, keep=False):
    """An answer that read these events at 100, 101, ... ns."""
    answer = Answer()
    if keep:
        answer.texts, answer.thoughts = [], []
    for at_ns, event in enumerate(events, start=100):
        PROTOCOL.read(event if isinstance(event, bytes) else msgspec.json.encode(event), at_ns, answer)
    return answer


def delta(kind, text):
    return {"type": f"response.{kind}.delta", "delta": text, "sequence_number": 4}


def ending(kind="completed", **response):
    return {"type": f"response.{kind}", "response": {"status": kind, "usage": USAGE, **response}}


def test_the_body_names_the_limit_as_this_api_does():
    """And has no stream_options: usage comes anyway."""
    request = PROTOCOL.request(Ask("m", (("user", "Hello"),), 5, temperature=0.0), "/v1/responses")

    assert {
        "model": "m",
        "input": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "max_output_tokens": 5,
        "temperature": 0.0,
    } == msgspec.json.decode(request.body)


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [
        ("output_text", False),
        ("refusal", False),
        ("function_call_arguments", False),
        ("reasoning_text", True),
        ("reasoning_summary_text", True),
    ],
)
def test_every_delta_is_a_token(kind, reasons):
    """Reasoning is one too, but no answer."""
    answer = read({"type": "response.created", "response": {}}, delta(kind, "hi"))

    assert (100, [101]) == (answer.first_event_ns, answer.token_ns)
    assert reasons == (answer.first_answer_ns is None)
    assert "hi" == answer.first_text


def test_a_delta_without_text_is_none():
    """As in the other APIs."""
    assert [] == read(delta("output_text", "")).token_ns


def test_a_call_is_a_token_by_its_name():
    """Some servers send no argument deltas, only the finished call."""
    item = {"type": "function_call", "name": "look_up", "arguments": ""}
    message = {"type": "message", "content": []}

    assert [100] == read({"type": "response.output_item.added", "item": item}).token_ns
    assert [] == read({"type": "response.output_item.added", "item": message}).token_ns


def test_usage_is_read_by_the_names_of_this_api():
    """The output includes the reasoning tokens."""
    answer = read(delta("output_text", "hi"), ending())

    assert (7, 3, 5) == answer.usage_counts()
    assert (True, "completed") == (answer.complete, answer.finish_reason)


def test_an_answer_cut_by_its_limit_says_length():
    """In the word of the other APIs, by which answers are compared."""
    answer = read(ending("incomplete", incomplete_details={"reason": "max_output_tokens"}))

    assert (True, "length") == (answer.complete, answer.finish_reason)


@pytest.mark.parametrize("events", [[], [b"[DONE]"], [{"type": "response.output_text.done", "text": "hi"}]])
def test_only_its_own_ending_makes_it_complete(events):
    """A bare [DONE] or the end of one part is no ending of the response."""
    assert not read(delta("output_text", "hi"), *events).complete


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"type": "error", "message": "out of memory", "code": "server_error"}, "out of memory"),
        ({"type": "error", "error": {"message": "out of memory"}}, "out of memory"),
        ({"type": "response.failed", "response": {"error": {"message": "engine died"}}}, "engine died"),
        ({"type": "response.failed"}, "the server said that the response failed, and not why"),
    ],
)
def test_a_failure_is_an_error_with_its_words(event, text):
    """In every shape it comes in."""
    assert text == read(delta("output_text", "hi"), event).error


@pytest.mark.parametrize("event", [b"", b" ", b": keepalive", b"[DONE]"])
def test_what_is_no_event_is_not_the_first_one(event):
    """Gateways hold connections open with these."""
    assert read(event).first_event_ns is None


@pytest.mark.parametrize("event", [b"{nonsense", b"hello", b"[1]", b'{"choices":[]}', b'{"type":7}'])
def test_what_cannot_be_an_event_is_refused(event):
    """The driver turns this into bad_stream."""
    with pytest.raises(msgspec.DecodeError):
        read(event)


def test_texts_are_kept_apart_from_thoughts_where_wanted():
    """A later turn of a conversation brings the answer, not the reasoning."""
    answer = read(
        delta("reasoning_text", "hm"), delta("output_text", "a"), delta("output_text", "b"), keep=True
    )

    assert (["a", "b"], ["hm"]) == (answer.texts, answer.thoughts)


def whole(value):
    answer = Answer()
    answer.texts, answer.thoughts = [], []
    PROTOCOL.read_whole(200, {}, msgspec.json.encode(value), 100, answer)
    return answer


def test_a_whole_answer_brings_text_usage_and_no_first_token():
    """Nothing was streamed, so there was no first token to time."""
    answer = whole({
        "status": "completed",
        "usage": USAGE,
        "output": [
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "ab"}]},
        ],
    })  # fmt: skip

    assert (["ab"], ["hm"], (7, 3, 5)) == (answer.texts, answer.thoughts, answer.usage_counts())
    assert (True, "completed", []) == (answer.done, answer.finish_reason, answer.token_ns)


def test_a_whole_answer_may_tell_of_a_failure():
    """With HTTP 200."""
    assert "boom" == whole({"status": "failed", "output": [], "error": {"message": "boom"}}).error


@pytest.mark.parametrize("value", [{}, {"choices": []}, [], "ok"])
def test_another_body_is_no_answer(value):
    """Another API answers here."""
    with pytest.raises(msgspec.DecodeError):
        whole(value)
