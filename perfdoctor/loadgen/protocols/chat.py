"""OpenAI chat completions, streamed, with the variations real servers send.

Payload is text in `content`, `reasoning` (vLLM, mlx-lm), `reasoning_content` (llama.cpp, transformers, older
vLLM) or `refusal`, and any tool call. A delta with only a role, or with empty text, is none. `choices` may be
null or empty (usage frames); usage may ride in any frame, the last one counts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols._protocol import Ask, Protocol, common_body, is_frame


class _Delta(msgspec.Struct, gc=False):
    content: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: Any = None


class _Frame(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw()
    timings: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Frame).decode


def _body(ask: Ask) -> dict[str, Any]:
    messages = [{"role": role, "content": text} for role, text in ask.messages]
    return common_body(ask) | {"messages": messages}


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
        if choice.finish_reason:
            answer.finish_reason = str(choice.finish_reason)
    if frame.usage or frame.timings or frame.error:
        answer.add_extras(frame.usage, frame.timings, frame.error)


PROTOCOL = Protocol(path="/chat/completions", body=_body, read=_read)
