"""OpenAI chat completions, with the variations real servers send.

Payload is text in `content`, `reasoning` (vLLM, mlx-lm), `reasoning_content` (llama.cpp, transformers, older
vLLM) or `refusal`, and any tool call. A delta with only a role, or with empty text, is none. `choices` may be
null or empty (usage frames); usage may ride in any frame, the last one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols._protocol import Ask, Protocol, common_body, is_frame, json_request
from perfdoctor.loadgen.protocols._usage import count_chunk
from perfdoctor.loadgen.transports._transport import Request


class _Message(msgspec.Struct, gc=False):
    content: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None


class _Choice(msgspec.Struct, gc=False):
    index: Any = 0
    delta: _Message | None = None
    message: _Message | None = None  # of an answer that was not streamed
    finish_reason: Any = None
    logprobs: Any = None


class _Frame(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw()
    timings: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Frame).decode


def _request(ask: Ask, path: str) -> Request:
    messages = [{"role": role, "content": text} for role, text in ask.messages]
    return json_request({**common_body(ask), "messages": messages}, ask, path)


def _read(event: bytes, at_ns: int, answer: Answer) -> None:
    # Called once a token: written out flat, as a function call costs as much as the decoding saves.
    if event[:1] != b"{" and not is_frame(event, answer):
        return
    frame = _decode(event)
    if answer.first_event_ns is None:
        answer.first_event_ns = at_ns
    for choice in frame.choices or ():
        delta = choice.delta
        if delta is not None:
            said = delta.content or delta.tool_calls or delta.refusal or delta.function_call
            thought = delta.reasoning_content or delta.reasoning
            if said or thought:
                answer.token_ns.append(at_ns)
                answer.text = thought or said
                if answer.first_answer_ns is None:
                    answer.begin(not said, at_ns)
                if answer.texts is not None:
                    answer.keep(said, thought)
            if frame.usage or choice.logprobs:
                count_chunk(answer, choice.index, frame.usage, choice.logprobs, bool(said or thought))
        if choice.index != answer.choice or choice.finish_reason:
            answer.note_choice(choice.index, choice.finish_reason)
    if frame.usage or frame.timings or frame.error:
        answer.add_extras(frame.usage, frame.timings, frame.error)


def _read_whole(status: int, headers: Mapping[str, str], body: bytes, at_ns: int, answer: Answer) -> None:
    frame = _decode(body)
    for choice in frame.choices or ():
        message = choice.message
        if message is not None:
            answer.keep(message.content, message.reasoning_content or message.reasoning)
        answer.note_choice(choice.index, choice.finish_reason)
    answer.add_extras(frame.usage, frame.timings, frame.error)
    if not frame.choices and answer.error is None:
        raise msgspec.ValidationError("the answer holds no choices")
    answer.done = True


PROTOCOL = Protocol("/chat/completions", _request, _read, _read_whole)
