"""One event at a time: what counts as a token, and what rides beside it."""

from dataclasses import replace

import msgspec
import pytest

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols import chat, completions
from perfdoctor.loadgen.protocols._protocol import Ask, without_refused
from perfdoctor.registry import discover


def read(*events, protocol=chat.PROTOCOL):
    """An answer that read these events at 100, 101, ... ns."""
    answer = Answer()
    for at_ns, event in enumerate(events, start=100):
        raw = event if isinstance(event, bytes) else msgspec.json.encode(event)
        protocol.read(raw, at_ns, answer)
    return answer


def delta(finish=None, **members):
    return {"choices": [{"index": 0, "delta": members, "finish_reason": finish}]}


PAYLOAD = {
    "content": {"content": "hi"},
    "reasoning": {"reasoning": "hm"},
    "reasoning_content": {"reasoning_content": "hm"},
    "refusal": {"refusal": "no"},
    "tool call name": {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]},
    "old function call": {"function_call": {"arguments": "{"}},
    "role in every delta": {"role": "assistant", "content": "hi"},
    "content of an odd type": {"content": [{"type": "text", "text": "hi"}]},
    "space": {"content": " "},
}
NO_PAYLOAD = {
    "role only": {"role": "assistant"},
    "role and empty text": {"role": "assistant", "content": ""},
    "role and null": {"role": "assistant", "content": None},
    "empty": {},
    "empty reasoning": {"reasoning_content": "", "reasoning": None},
    "empty tool calls": {"tool_calls": []},
}


@pytest.mark.parametrize("members", PAYLOAD.values(), ids=PAYLOAD)
def test_generated_content_of_any_kind_is_a_token(members):
    """A model that thinks, refuses or calls a tool has answered."""
    assert [100] == read(delta(**members)).token_ns


@pytest.mark.parametrize("members", NO_PAYLOAD.values(), ids=NO_PAYLOAD)
def test_a_delta_without_content_is_no_token(members):
    """A role chunk comes before anything was computed: it must not stop the TTFT clock."""
    answer = read(delta(**members))

    assert [] == answer.token_ns
    assert 100 == answer.first_event_ns


def test_reasoning_is_the_first_token_but_not_the_first_answer():
    """Both times exist apart."""
    answer = read(delta(role="assistant"), delta(reasoning="hm"), delta(reasoning="so"), delta(content="Hi"))

    assert [101, 102, 103] == answer.token_ns
    assert 103 == answer.first_answer_ns
    assert "hm" == answer.first_text


def test_an_answer_that_only_reasons_has_no_first_answer():
    """Cut off while thinking: None, not the last token."""
    assert read(delta(reasoning="hm"), delta("length")).first_answer_ns is None


def test_first_text_is_of_the_first_token_only():
    """It only serves to recognise a prompt's tail; it is cut when the record is made."""
    answer = read(delta(content="x" * 100), delta(content="later"))

    assert "x" * 100 == answer.first_text
    assert read(delta(tool_calls=[{"index": 0}]), delta(content="hi")).first_text is None


def test_finish_reason_may_come_with_text():
    """vLLM puts it on the last token."""
    answer = read(delta("length", content="hi"))

    assert ([100], "length", True) == (answer.token_ns, answer.finish_reason, answer.complete)


def test_the_last_usage_wins_wherever_it_rides():
    """In the finish chunk, in a chunk of its own, or in every chunk; a later null does not erase it."""
    first = {**delta(content="a"), "usage": {"prompt_tokens": 7, "completion_tokens": 1}}
    last = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    cached = {"usage": {**last["usage"], "prompt_tokens_details": {"cached_tokens": 5}}}

    assert (7, 2, None) == read(first, last, {"choices": [], "usage": None}).usage_counts()
    assert (7, 2, 5) == read(first, {**delta("stop"), **cached}).usage_counts()
    assert (None, None, None) == read(delta(content="a")).usage_counts()


@pytest.mark.parametrize("count", [-1, 2.5, "2", True, None, 10**15])
def test_an_implausible_count_is_unknown(count):
    """Missing, not zero and not an error: the tokens themselves arrived."""
    answer = read(delta(content="a"), {"choices": [], "usage": {"completion_tokens": count}})

    assert (None, None, None) == answer.usage_counts()


@pytest.mark.parametrize("usage", [[], "none", 3, {}])
def test_usage_of_another_shape_costs_only_itself(usage):
    """The stream goes on."""
    answer = read(delta(content="a"), {"choices": [], "usage": usage}, delta("stop"))

    assert (None, None, None) == answer.usage_counts()
    assert answer.complete


def test_llamacpp_timings_are_seconds():
    """prompt_ms and predicted_ms of the server's own clock."""
    timings = {"prompt_ms": 12.5, "predicted_ms": 80, "cache_n": 3}

    assert (0.0125, 0.08) == read({"choices": [], "timings": timings}).server_times()
    assert (None, None) == read(delta("stop")).server_times()
    assert (None, 0.08) == read({"timings": {"prompt_ms": -1, "predicted_ms": 80}}).server_times()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ({"message": "out of memory", "code": 500}, "out of memory"),
        ("boom", "boom"),
        ({"code": 7}, "{'code': 7}"),
    ],
)
def test_an_error_frame_is_noted_with_its_message(error, text):
    """In whatever shape it comes."""
    assert text == read(delta(content="a"), {"error": error}).error


@pytest.mark.parametrize("error", [None, {}, "", False])
def test_an_empty_error_is_none(error):
    """Some servers carry the member in every frame."""
    assert read({**delta(content="a"), "error": error}).error is None


@pytest.mark.parametrize("frame", [{"choices": None}, {"choices": []}, {}, {"choices": [{"index": 0}]}])
def test_frames_without_choices_are_tolerated(frame):
    """They are frames, but no tokens."""
    assert [] == read(frame).token_ns


@pytest.mark.parametrize("event", [b"", b" ", b": keepalive", b"[DONE]"])
def test_what_is_no_frame_is_no_first_event(event):
    """Keep-alives that gateways send as data are neither JSON nor the first byte of an answer."""
    answer = read(event)

    assert answer.first_event_ns is None
    assert (event == b"[DONE]") == answer.done


@pytest.mark.parametrize("event", [b"{nonsense", b"hello", b"[1]", b'{"choices":{}}', b'{"choices":["x"]}'])
def test_what_cannot_be_a_frame_is_refused(event):
    """The driver turns this into bad_stream."""
    with pytest.raises(msgspec.DecodeError):
        read(event)


def test_completions_carry_text():
    """`choices[].text`; an empty text is none."""
    answer = read(
        {"choices": [{"index": 0, "text": ""}]},
        {"choices": [{"index": 0, "text": "s"}]},
        {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "usage": {"completion_tokens": 1}},
        protocol=completions.PROTOCOL,
    )

    assert ([101], 101, "s", "stop") == (
        answer.token_ns, answer.first_answer_ns, answer.first_text, answer.finish_reason,
    )  # fmt: skip
    assert (None, 1, None) == answer.usage_counts()


@pytest.mark.parametrize("reason", [None, "length"])
def test_an_answer_of_several_choices_is_complete_when_all_have_finished(reason):
    """Keyed by their index; the first that finishes does not speak for the others."""
    both = [{"choices": [{"index": i, "delta": {"content": "a"}}]} for i in (0, 1)]
    ends = [
        {"choices": [{"index": i, "delta": {}, "finish_reason": r}]} for i, r in ((1, "stop"), (0, reason))
    ]
    answer = read(*both, *both, *ends)

    assert 4 == len(answer.token_ns)
    assert bool(reason) == answer.complete


def test_usage_in_every_chunk_tells_the_tokens_of_each():
    """Tokens that showed no text, as a parser held them back, belong to the next chunk that does."""
    events = [{**delta(content=""), "usage": {"completion_tokens": 0}}]
    events += [{**delta(content="text"), "usage": {"completion_tokens": n}} for n in (1, 5)]
    events += [{**delta(), "usage": {"completion_tokens": 7}}]
    events += [{**delta(content="text"), "usage": {"completion_tokens": 9}}]

    assert [1, 4, 4] == read(*events).token_counts


@pytest.mark.parametrize("counts", [[1, None, 3], [3, 2], [1, "2"]])
def test_counts_with_a_hole_are_not_known(counts):
    """Fewer counts than chunks: no gap may be divided by a guess."""
    events = [{**delta(content="text"), "usage": {"completion_tokens": n} if n else None} for n in counts]
    answer = read(*events)

    assert len(answer.token_counts) < len(answer.token_ns)


def test_choices_are_counted_apart():
    """Each chunk's usage is of its own choice."""
    events = [
        {"choices": [{"index": i, "delta": {"content": "a"}}], "usage": {"completion_tokens": n}}
        for i, n in ((0, 2), (1, 3), (0, 4), (1, 6))
    ]

    assert [2, 3, 2, 3] == read(*events).token_counts


def test_logprobs_tell_the_tokens_of_a_chunk():
    """One entry a token, in both APIs."""
    entry = {"token": "a", "logprob": -1.0}
    chat_events = [
        {"choices": [{"delta": {"content": "ab"}, "logprobs": {"content": [entry] * n}}]} for n in (2, 3)
    ]
    text_event = {"choices": [{"text": "ab", "logprobs": {"tokens": ["a", "b"], "token_logprobs": [-1, -1]}}]}

    assert [2, 3] == read(*chat_events).token_counts
    assert [2] == read(text_event, protocol=completions.PROTOCOL).token_counts


def test_logprobs_of_a_frame_without_text_belong_to_the_next_chunk():
    """llama.cpp tells them with the role, and the text that a parser held back one chunk later."""
    entry = {"token": "a", "logprob": -1.0}
    frames = [
        {"choices": [{"delta": d, "logprobs": {"content": [entry]}}]}
        for d in ({"role": "a"}, {"content": "ab"})
    ]

    assert [2] == read(*frames).token_counts


def whole(value, protocol=chat.PROTOCOL):
    answer = Answer()
    answer.texts, answer.thoughts = [], []
    protocol.read_whole(
        200, {}, value if isinstance(value, bytes) else msgspec.json.encode(value), 100, answer
    )
    return answer


def test_whole_answers_are_read():
    """No first token to time, but text, reasoning, reason and usage."""
    message = {"role": "assistant", "content": "ab", "reasoning_content": "hm"}
    usage = {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    said = whole({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **usage})
    text = whole({"choices": [{"text": "ab", "finish_reason": "length"}], **usage}, completions.PROTOCOL)

    assert (["ab"], ["hm"], "stop") == (said.texts, said.thoughts, said.finish_reason)
    assert (["ab"], "length", (7, 3, None)) == (text.texts, text.finish_reason, text.usage_counts())
    assert said.done and not said.token_ns


@pytest.mark.parametrize("protocol", [chat.PROTOCOL, completions.PROTOCOL])
@pytest.mark.parametrize("value", [{}, {"choices": []}, {"choices": None}, [], b"<html>", b""])
def test_another_body_is_no_whole_answer(protocol, value):
    """Something else answers at this path."""
    with pytest.raises(msgspec.DecodeError):
        whole(value, protocol)


def test_a_whole_answer_may_hold_an_error():
    """With HTTP 200."""
    assert "boom" == whole({"error": {"message": "boom"}}).error


def test_texts_are_kept_only_where_wanted():
    """They cost memory; reasoning is kept apart, as no later turn may bring it."""
    answer = Answer()
    chat.PROTOCOL.read(msgspec.json.encode(delta(content="a")), 100, answer)
    answer.texts, answer.thoughts = [], []
    for members in ({"reasoning": "hm"}, {"content": "b"}, {"tool_calls": [{"index": 0}]}):
        chat.PROTOCOL.read(msgspec.json.encode(delta(**members)), 100, answer)

    assert (["b"], ["hm"]) == (answer.texts, answer.thoughts)


def body(ask, protocol=chat.PROTOCOL):
    request = protocol.request(ask, "/v1/x")
    assert ("POST", "/v1/x") == (request.method, request.path)
    return msgspec.json.decode(request.body)


HELLO = Ask(model="m", messages=(("user", "Hello"),), max_tokens=5)


def test_bodies_ask_for_a_stream_with_usage():
    """What every server must be able to read."""
    common = {"model": "m", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 5}

    assert common | {"messages": [{"role": "user", "content": "Hello"}]} == body(HELLO)
    assert common | {"prompt": "Hello"} == body(HELLO, completions.PROTOCOL)


def test_optional_members_appear_only_when_wanted():
    """A strict server refuses what it does not know."""
    plain, warm = body(replace(HELLO, usage=False)), body(replace(HELLO, temperature=0.0))

    assert "stream_options" not in plain and "temperature" not in plain
    assert 0.0 == warm["temperature"]
    assert "stream_options" not in body(replace(HELLO, stream=False))


def test_extra_members_are_laid_over_and_null_takes_one_out():
    """So a newer name of a limit can stand in for the older one."""
    extra = {"max_completion_tokens": 7, "max_tokens": None, "model": "n"}
    found = body(replace(HELLO, extra=extra))

    assert (7, "n") == (found["max_completion_tokens"], found["model"])
    assert "max_tokens" not in found


@pytest.mark.parametrize("status", [400, 422])
def test_refused_token_counts_are_left_out_one_by_one(status):
    """First the counts of every chunk, which only some servers know; then all."""
    asked = replace(HELLO, per_chunk=True)
    first = without_refused(asked, status, "stream_options.continuous_usage_stats: extra inputs")
    second = without_refused(first, status, "unknown member stream_options")

    assert (True, False) == (first.usage, first.per_chunk)
    assert not second.usage
    assert without_refused(second, status, "unknown member stream_options") is None


@pytest.mark.parametrize(
    ("status", "text"), [(400, "prompt too long"), (500, "stream_options"), (None, "stream_options")]
)
def test_another_refusal_is_a_result(status, text):
    """It is not asked again."""
    assert without_refused(HELLO, status, text) is None


def test_protocols_are_discovered():
    """A protocol is a file."""
    found = {
        name: protocol.path for name, protocol, _ in discover("perfdoctor.loadgen.protocols", "PROTOCOL")
    }

    paths = {
        "chat": "/chat/completions",
        "completions": "/completions",
        "responses": "/responses",
        "http": "",
    }
    assert paths == found
