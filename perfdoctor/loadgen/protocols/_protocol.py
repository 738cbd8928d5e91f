"""The shape of a protocol: where to post, what to post, how to read one event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.prompts._prompt import Message


@dataclass(frozen=True, slots=True)
class Ask:
    """What one request asks for; `usage` False once the server has refused `stream_options`."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = None
    stream: bool = True
    usage: bool = True
    per_chunk: bool = False  # token counts in every chunk
    extra: Mapping[str, Any] = field(default_factory=dict)  # laid over the body
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Protocol:
    """`read` may raise msgspec.DecodeError: the event is then no frame of this protocol."""

    path: str  # under /v1
    body: Callable[[Ask], dict[str, Any]]
    read: Callable[[bytes, int, Answer], None]


def common_body(ask: Ask) -> dict[str, Any]:
    """The members that all protocols share."""
    body: dict[str, Any] = {"model": ask.model, "stream": True, "max_tokens": ask.max_tokens}
    if ask.usage:
        body["stream_options"] = {"include_usage": True}
    if ask.temperature is not None:
        body["temperature"] = ask.temperature
    return body


def is_frame(event: bytes, answer: Answer) -> bool:
    """Whether an event that does not start with a brace is to be read as JSON. Notes [DONE].

    Empty data and `data: : keepalive` are what gateways send to hold a connection open.
    """
    if event == b"[DONE]":
        answer.done = True
        return False
    return bool(event) and not event.isspace() and not event.startswith(b":")
