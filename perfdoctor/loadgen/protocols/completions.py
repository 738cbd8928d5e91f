"""OpenAI text completions: payload is `choices[].text`; the rest as in chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols._protocol import Ask, Protocol, common_body, is_frame, json_request
from perfdoctor.loadgen.protocols._usage import count_chunk
from perfdoctor.loadgen.transports._transport import Request


class _Choice(msgspec.Struct, gc=False):
    index: Any = 0
    text: Any = None
    finish_reason: Any = None
    logprobs: Any = None


class _Frame(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw()
    timings: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Frame).decode


def _request(ask: Ask, path: str) -> Request:
    prompt = "\n".join(text for _, text in ask.messages)
    return json_request({**common_body(ask), "prompt": prompt}, ask, path)


def _read(event: bytes, at_ns: int, answer: Answer) -> None:
    if event[:1] != b"{" and not is_frame(event, answer):
        return
    frame = _decode(event)
    if answer.first_event_ns is None:
        answer.first_event_ns = at_ns
    for choice in frame.choices or ():
        if choice.text:
            answer.token_ns.append(at_ns)
            answer.text = choice.text
            if answer.first_answer_ns is None:
                answer.begin(False, at_ns)
            if answer.texts is not None:
                answer.keep(choice.text, None)
        if frame.usage or choice.logprobs:
            count_chunk(answer, choice.index, frame.usage, choice.logprobs, bool(choice.text))
        if choice.index != answer.choice or choice.finish_reason:
            answer.note_choice(choice.index, choice.finish_reason)
    if frame.usage or frame.timings or frame.error:
        answer.add_extras(frame.usage, frame.timings, frame.error)


def _read_whole(status: int, headers: Mapping[str, str], body: bytes, at_ns: int, answer: Answer) -> None:
    frame = _decode(body)
    for choice in frame.choices or ():
        answer.keep(choice.text, None)
        answer.note_choice(choice.index, choice.finish_reason)
    answer.add_extras(frame.usage, frame.timings, frame.error)
    if not frame.choices and answer.error is None:
        raise msgspec.ValidationError("the answer holds no choices")
    answer.done = True


PROTOCOL = Protocol("/completions", _request, _read, _read_whole)
