"""Bodies of the API: what is read, what is refused and how, and the words of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from perfdoctor.local.api import profile_steps, sse, stream_messages
from perfdoctor.local.body import BadBody, Wording, read_body
from perfdoctor.local.request import Broken, Done, Piece, Request

HI = [{"role": "user", "content": "hi"}]


def read(chat: bool = True, **body: Any) -> Request:
    return read_body({"messages": HI, "prompt": "hi"} | body, chat, "tiny", "1")


def refusal(chat: bool = True, **body: Any) -> BadBody:
    with pytest.raises(BadBody) as caught:
        read(chat, **body)
    return caught.value


def test_a_bare_request_gets_the_defaults():
    """Nothing but messages: 256 tokens, not streamed, the checkpoint's own sampling."""
    assert Request(id="1", messages=(("user", "hi"),), max_tokens=256) == read()


def test_every_option_is_read():
    """As vLLM and OpenAI name them."""
    request = read(
        model="tiny", stream=True, stream_options={"include_usage": True}, max_tokens=5, temperature=0.5,
        top_p=0.9, seed=3, ignore_eos=True, chat_template_kwargs={"enable_thinking": False},
    )  # fmt: skip

    expected = Request(
        id="1", messages=(("user", "hi"),), thinking=False, stream=True, include_usage=True, max_tokens=5,
        temperature=0.5, top_p=0.9, seed=3, ignore_eos=True,
    )  # fmt: skip
    assert expected == request


def test_the_newer_name_of_max_tokens_wins():
    """max_completion_tokens is what OpenAI's current clients send."""
    assert 7 == read(max_tokens=5, max_completion_tokens=7).max_tokens


def test_a_completion_continues_its_prompt():
    """No messages; a list of one is one."""
    assert Request(id="1", prompt="hi") == read(chat=False)
    assert "hi" == read(chat=False, prompt=["hi"]).prompt


def test_parts_of_text_are_joined():
    """The list form of content."""
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {}},
        {"type": "text", "text": "b"},
    ]

    assert (("user", "ab"),) == read(messages=[{"role": "user", "content": parts}]).messages


def test_another_model_is_not_found():
    """404 with OpenAI's code, naming what is served."""
    bad = refusal(model="gpt-4")

    assert (404, "model_not_found", "model") == (bad.status, bad.code, bad.param)
    assert "'tiny'" in bad.message
    assert {"message", "type", "param", "code"} == bad.answer()["error"].keys()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("messages", []),
        ("messages", "hi"),
        ("messages", ["hi"]),
        ("messages", [{"role": "user"}]),
        ("messages", [{"content": "hi"}]),
        ("max_tokens", 0),
        ("max_tokens", 1.5),
        ("max_tokens", True),
        ("max_tokens", "5"),
        ("temperature", -0.1),
        ("temperature", 2.1),
        ("top_p", 0),
        ("seed", -1),
        ("n", 2),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object):
    """400, and `param` says which."""
    bad = refusal(**{field: value})

    assert (400, field) == (bad.status, bad.param)


@pytest.mark.parametrize("prompt", ["", None, 5, ["a", "b"]])
def test_a_completion_needs_one_prompt(prompt: object):
    """Batches are not offered."""
    assert "prompt" == refusal(chat=False, prompt=prompt).param


@pytest.mark.parametrize(
    ("field", "low", "high"), [("temperature", 0, 2), ("max_tokens", 1, 1 << 20), ("top_p", 1e-6, 1)]
)
def test_the_limits_themselves_are_allowed(field: str, low: float, high: float):
    """Both ends of each range."""
    assert [low, high] == [getattr(read(**{field: value}), field) for value in (low, high)]


def test_a_body_that_is_no_object_is_refused():
    """A JSON list, say."""
    with pytest.raises(BadBody, match="JSON object"):
        read_body([], chat=True, served="tiny", id="1")


@pytest.mark.parametrize(("header", "steps"), [(None, 0), ("1", 1), ("256", 256)])
def test_the_profile_header_says_how_many_steps(header: str | None, steps: int):
    """Absent: none."""
    assert steps == profile_steps(header)


@pytest.mark.parametrize("header", ["0", "257", "-1", "many", ""])
def test_a_wrong_profile_header_is_refused(header: str):
    """400 like any other bad request."""
    with pytest.raises(BadBody):
        profile_steps(header)


def wording(chat: bool) -> Wording:
    return Wording(read(chat), "tiny", created=5)


def choice(body: dict[str, Any]) -> dict[str, Any]:
    return body["choices"][0]


def test_reasoning_and_answer_have_their_own_fields():
    """Clients tell them apart by the field alone."""
    assert {"reasoning_content": "a"} == choice(wording(True).piece(Piece("a", "reasoning")))["delta"]
    assert {"content": "b"} == choice(wording(True).piece(Piece("b", "answer")))["delta"]
    assert "c" == choice(wording(False).piece(Piece("c", "answer")))["text"]


def test_a_chat_stream_opens_with_the_role_and_a_completion_with_nothing():
    """As OpenAI's do."""
    opening = wording(True).opening()

    assert opening is not None
    assert {"role": "assistant", "content": ""} == choice(opening)["delta"]
    assert wording(False).opening() is None


def test_a_stream_ends_with_reason_usage_and_done():
    """In this order; usage only when asked for."""
    done = Done("stop", prompt_tokens=2, output_tokens=3)

    asked = stream_messages(done, wording(True), include_usage=True)
    unasked = stream_messages(done, wording(True), include_usage=False)

    assert b'"finish_reason": "stop"' in asked[0]
    assert b'"usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}' in asked[1]
    assert b"data: [DONE]\n\n" == asked[2]
    assert (asked[0], asked[2]) == unasked


def test_a_failure_inside_a_stream_is_an_error_event():
    """The status has been sent, so it cannot say it any more."""
    (message,) = stream_messages(Broken("no memory"), wording(True), include_usage=True)

    assert message.startswith(b'data: {"error": {"message": "no memory", "type": "server_error"')


def test_the_whole_answer_joins_its_pieces():
    """Of a request that was not streamed."""
    pieces = [Piece("a", "reasoning"), Piece("b", "reasoning"), Piece("c", "answer")]

    message = choice(wording(True).whole(pieces, Done("length", 1, 3)))["message"]

    assert {"role": "assistant", "content": "c", "reasoning_content": "ab"} == message


def test_an_event_is_one_line_of_utf8():
    """Newlines in the text stay escaped."""
    assert 'data: {"a": "ü\\n"}\n\n'.encode() == sse({"a": "ü\n"})
