"""Whatever a server sends, reading it ends in an answer or in the one error that the exchange expects."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdoctor.loadgen.answer import MOST, Answer
from perfdoctor.loadgen.protocols import chat, completions, http, responses
from perfdoctor.loadgen.tokens import count_output

PROTOCOLS = {"chat": chat, "completions": completions, "responses": responses, "http": http}
_MEMBERS = [
    "choices", "index", "delta", "message", "content", "reasoning", "tool_calls", "finish_reason", "logprobs",
    "usage", "completion_tokens", "output_tokens", "prompt_tokens_details", "cached_tokens", "timings",
    "error", "text", "type", "response", "output", "item", "incomplete_details", "reason", "status",
]  # fmt: skip
_KINDS = [
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
    "response.output_item.added",
]

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([*_KINDS, "", "a", "response.output_text.delta", 10**30]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_MEMBERS), inner, max_size=4),
    max_leaves=12,
)


def shaped(**members):
    """An object with some of these members."""
    return st.fixed_dictionaries({}, optional=members)


usage = values | shaped(completion_tokens=values, prompt_tokens_details=values, output_tokens=values)
said = shaped(content=values, reasoning=values, tool_calls=values)
choice = shaped(
    index=values, delta=said, message=said, text=values, finish_reason=values,
    logprobs=shaped(content=values, tokens=values),
)  # fmt: skip
frame = shaped(choices=st.lists(choice, max_size=3), usage=usage, error=values, timings=values)
part = shaped(type=values, content=st.lists(shaped(text=values, refusal=values), max_size=2) | values)
response = shaped(
    status=values, output=st.lists(part, max_size=2), usage=usage, error=values, incomplete_details=values
)
typed = st.fixed_dictionaries(
    {"type": st.sampled_from([*_KINDS, "response.output_text.delta", "response.reasoning_text.delta"])},
    optional={"delta": values, "item": part, "response": response, "message": values, "error": values},
)
encoded = st.one_of(values, frame, typed, response).map(lambda value: json.dumps(value).encode())
events = st.binary(max_size=12) | encoded


@pytest.mark.parametrize("name", PROTOCOLS)
@settings(max_examples=60, deadline=None)
@given(st.lists(events, max_size=5), st.booleans())
def test_any_events_are_read_or_refused(name, stream, keep):
    """Counts stay plausible, stamps in order, and kept texts are text."""
    protocol, answer = PROTOCOLS[name].PROTOCOL, Answer()
    if keep:
        answer.texts, answer.thoughts = [], []
    for at_ns, event in enumerate(stream):
        try:
            protocol.read(event, at_ns, answer)
        except msgspec.DecodeError:
            break
    tokens, source = count_output(answer, streamed=True)

    assert 0 <= tokens < MOST * 6 and source
    assert answer.token_ns == sorted(answer.token_ns)
    assert all(0 <= count for count in answer.token_counts)
    assert all(isinstance(text, str) for text in (*(answer.texts or ()), *(answer.thoughts or ())))
    assert answer.complete in (True, False) and (answer.error is None or isinstance(answer.error, str))


@pytest.mark.parametrize("name", PROTOCOLS)
@settings(max_examples=60, deadline=None)
@given(events)
def test_any_whole_body_is_read_or_refused(name, body):
    """What is read is complete, or tells an error."""
    answer = Answer()
    answer.texts, answer.thoughts = [], []
    try:
        PROTOCOLS[name].PROTOCOL.read_whole(200, {}, body, 7, answer)
    except msgspec.DecodeError:
        return
    assert answer.done and not answer.token_ns
    assert all(isinstance(text, str) for text in (*answer.texts, *answer.thoughts))
