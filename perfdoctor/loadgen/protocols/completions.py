"""OpenAI text completions, streamed: payload is `choices[].text`; the rest as in chat."""

from __future__ import annotations

from typing import Any

import msgspec

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols._protocol import Ask, Protocol, common_body, is_frame


class _Choice(msgspec.Struct, gc=False):
    text: Any = None
    finish_reason: Any = None


class _Frame(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw()
    timings: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Frame).decode


def _body(ask: Ask) -> dict[str, Any]:
    return common_body(ask) | {"prompt": "\n".join(text for _, text in ask.messages)}


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
        if choice.finish_reason:
            answer.finish_reason = str(choice.finish_reason)
    if frame.usage or frame.timings or frame.error:
        answer.add_extras(frame.usage, frame.timings, frame.error)


PROTOCOL = Protocol(path="/completions", body=_body, read=_read)
