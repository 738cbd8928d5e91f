"""The shape of a protocol: what one request asks for, how it is put into bytes, how answers are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.prompts._prompt import Message
from perfdoctor.loadgen.transports._transport import Request
from perfdoctor.model import Target
from perfdoctor.registry import load_member


@dataclass(frozen=True, slots=True)
class Ask:
    """What one request asks for. `usage` and `per_chunk` are False once the server has refused them."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = None
    stream: bool = True
    usage: bool = True
    per_chunk: bool = False  # usage in every chunk, so that its tokens are known
    extra: Mapping[str, Any] = field(default_factory=dict)  # laid over the body; None takes a member out
    number: int = 0  # of the request, from 1: makes a template's variables differ
    variables: Mapping[str, str] = field(default_factory=dict)  # of the prompt, for templates
    digest: str | None = None  # of the prompt
    turn: int | None = None
    keep_text: bool = False  # the answer's text is wanted: a later turn needs it, or a tokenizer counts it


@dataclass(frozen=True, slots=True)
class Protocol:
    """How one API is spoken.

    `request` makes the whole request from an ask and the path that the target's URL gave. `read` takes one
    event of a stream and may raise msgspec.DecodeError: the event is then no frame of this protocol.
    `read_whole` takes the complete body of a 2xx answer that was not streamed, raises the same for what is no
    answer of this protocol, and else sets `answer.done`; an error told inside goes to `answer.error`.
    """

    path: str  # under /v1; unused where the URL is absolute
    request: Callable[[Ask, str], Request]
    read: Callable[[bytes, int, Answer], None]
    read_whole: Callable[[int, Mapping[str, str], bytes, int, Answer], None]
    accept: str = "text/event-stream"
    content_type: str | None = "application/json"  # of requests; None: they have no body, or their own header
    absolute: bool = False  # the target's URL is taken as it stands
    tokens: bool = True  # chunks are tokens, and a stream must say that it was finished
    fills_headers: tuple[str, ...] = ()  # headers of the target that `request` brings itself, filled in
    fixed: bool = False  # every request is the same: no prompt is made for it
    keep_body: bool = True  # `read_whole` looks at the body; else it is counted, not kept
    bind: Callable[[Target, int, Collection[str]], Protocol] | None = None  # see make_protocol


def make_protocol(
    target: Target, seed: int = 0, variables: Collection[str] = (), speaks: bool = True
) -> Protocol:
    """The protocol of a target's API, for a source's prompts: `variables` and `speaks` are the source's.

    UsageError when a template asks for a variable that there is none of, or a model would be asked nothing.
    """
    protocol: Protocol = load_member("perfdoctor.loadgen.protocols", target.api, "PROTOCOL")[0]
    if protocol.bind:
        return protocol.bind(target, seed, variables)
    if not speaks:
        raise UsageError(
            "the file of prompts has rows without a prompt",
            f"--api {target.api} needs one of prompt, text, messages or conversations in each.",
            "add a prompt column; rows of variables alone go with --api http",
        )
    return protocol if target.stream else replace(protocol, accept="application/json")


def without_refused(ask: Ask, status: int | None, body: str) -> Ask | None:
    """The ask without what the server has just refused to be asked; None: it refused something else.

    Token counts are a wish, not the load: a strict proxy that does not know them is asked once more without.
    """
    if status not in (400, 422):
        return None
    if ask.per_chunk and ("continuous_usage_stats" in body or "stream_options" in body):
        return replace(ask, per_chunk=False)
    if ask.usage and "stream_options" in body:
        return replace(ask, usage=False, per_chunk=False)
    return None


def common_body(ask: Ask) -> dict[str, Any]:
    """The members that chat and completions share."""
    body: dict[str, Any] = {"model": ask.model, "stream": ask.stream, "max_tokens": ask.max_tokens}
    if ask.stream and ask.usage:
        body["stream_options"] = {"include_usage": True}
        if ask.per_chunk:
            body["stream_options"]["continuous_usage_stats"] = True
    if ask.temperature is not None:
        body["temperature"] = ask.temperature
    return body


def json_request(body: dict[str, Any], ask: Ask, path: str) -> Request:
    if ask.extra:
        body = {key: value for key, value in {**body, **ask.extra}.items() if value is not None}
    return Request("POST", path, {}, msgspec.json.encode(body))


def is_frame(event: bytes, answer: Answer) -> bool:
    """Whether an event that does not start with a brace is to be read as JSON. Notes [DONE].

    Empty data and `data: : keepalive` are what gateways send to hold a connection open.
    """
    if event == b"[DONE]":
        answer.done = True
        return False
    return bool(event) and not event.isspace() and not event.startswith(b":")
