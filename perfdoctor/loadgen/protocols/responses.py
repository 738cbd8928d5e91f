"""OpenAI Responses: a stream of typed events.

Every event whose type ends in `.delta` brings generated payload: text, a refusal, arguments of a call, or
reasoning (its type says so). A function call announces itself by name before its arguments, or brings both at
once; either is its first token. An answer is complete only with `response.completed` or
`response.incomplete`: these two bring the usage, and a bare [DONE] says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols._protocol import Ask, Protocol, json_request
from perfdoctor.loadgen.transports._transport import Request

_LIMIT = "max_output_tokens"


class _Response(msgspec.Struct, gc=False):
    status: Any = None
    output: Any = None
    usage: msgspec.Raw = msgspec.Raw()
    timings: msgspec.Raw = msgspec.Raw()  # of llama.cpp; in a stream it lies beside the response
    error: msgspec.Raw = msgspec.Raw()
    incomplete_details: Any = None


class _Item(msgspec.Struct, gc=False):
    type: Any = None


class _Event(msgspec.Struct, gc=False):
    type: str
    delta: Any = None
    item: _Item | None = None
    response: _Response | None = None
    timings: msgspec.Raw = msgspec.Raw()
    message: Any = None  # of an error event
    error: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Event).decode
_decode_whole = msgspec.json.Decoder(_Response).decode


def _request(ask: Ask, path: str) -> Request:
    body: dict[str, Any] = {
        "model": ask.model,
        "input": [{"role": role, "content": text} for role, text in ask.messages],
        "stream": ask.stream,
        _LIMIT: ask.max_tokens,
    }
    if ask.temperature is not None:
        body["temperature"] = ask.temperature
    return json_request(body, ask, path)


def _read(event: bytes, at_ns: int, answer: Answer) -> None:
    if event[:1] != b"{" and (not event or event.isspace() or event[:1] == b":" or event == b"[DONE]"):
        return
    frame = _decode(event)
    kind = frame.type
    if answer.first_event_ns is None:
        answer.first_event_ns = at_ns
    if kind.endswith(".delta"):
        if frame.delta:
            _add_token(answer, frame.delta, kind.startswith("response.reasoning"), at_ns)
    elif kind == "response.output_item.added":
        if frame.item is not None and str(frame.item.type).endswith("_call"):
            _add_token(answer, None, False, at_ns)
    elif kind in ("response.completed", "response.incomplete") and frame.response is not None:
        _finish(frame.response, kind.removeprefix("response."), frame.timings, answer)
    elif kind in ("response.failed", "error"):
        _fail(frame, answer)


def _add_token(answer: Answer, delta: Any, reasoning: bool, at_ns: int) -> None:
    answer.token_ns.append(at_ns)
    answer.text = delta
    if answer.first_answer_ns is None:
        answer.begin(reasoning, at_ns)
    answer.keep(None if reasoning else delta, delta if reasoning else None)


def _finish(response: _Response, status: str, timings: msgspec.Raw, answer: Answer) -> None:
    """The reason in the words of the other APIs where the server's limit of tokens was reached."""
    details = response.incomplete_details
    reason = details.get("reason") if isinstance(details, dict) else None
    answer.finish_reason = "length" if reason == _LIMIT else str(reason or response.status or status)
    answer.add_extras(response.usage, timings, response.error)
    answer.done = True


def _fail(frame: _Event, answer: Answer) -> None:
    response = frame.response
    told = response.error if response and response.error else frame.error
    answer.add_extras(msgspec.Raw(), msgspec.Raw(), told)
    if answer.error is None:
        answer.error = str(frame.message or "the server said that the response failed, and not why")


def _read_whole(status: int, headers: Mapping[str, str], body: bytes, at_ns: int, answer: Answer) -> None:
    response = _decode_whole(body)
    if isinstance(response.output, list):
        for item in response.output:
            _keep_item(item, answer)
    elif response.status is None and not response.error:
        raise msgspec.ValidationError("the answer holds no output")
    _finish(response, "completed", response.timings, answer)
    if response.status == "failed" and answer.error is None:
        answer.error = "the server said that the response failed, and not why"


def _keep_item(item: Any, answer: Answer) -> None:
    parts = item.get("content") if isinstance(item, dict) else None
    for part in parts if isinstance(parts, list) else ():
        text = part.get("text") or part.get("refusal") if isinstance(part, dict) else None
        thought = item.get("type") == "reasoning"
        answer.keep(None if thought else text, text if thought else None)


PROTOCOL = Protocol("/responses", _request, _read, _read_whole)
