"""Request bodies of the OpenAI API, read and checked; the events and answers of its two endpoints. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfdoctor.local.request import DEFAULT_MAX_TOKENS, Done, Piece, Request

LIMIT_TOKENS = 1 << 20  # of max_tokens; the context is the real limit


class BadBody(Exception):
    """A request that cannot be served, as the API words it: status, code and the field at fault."""

    def __init__(
        self, message: str, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.message, self.param, self.code, self.status = message, param, code, status

    def answer(self) -> dict[str, Any]:
        return error_body(self.message, self.param, self.code)


def error_body(message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    kind = "server_error" if code == "server_error" else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def read_body(body: Any, chat: bool, served: str, id: str, profile_steps: int = 0) -> Request:
    """The request that a decoded JSON body asks for; BadBody when it asks for what is not offered."""
    if not isinstance(body, Mapping):
        raise BadBody("the body must be a JSON object")
    model = body.get("model", served)
    if model != served:
        message = f"the model '{model}' does not exist; this server has '{served}'"
        raise BadBody(message, "model", "model_not_found", 404)
    if body.get("n") not in (None, 1):
        raise BadBody("only one answer a request: n must be 1", "n")
    options = body.get("stream_options")
    template = body.get("chat_template_kwargs")
    limit = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    tokens = _number(body, limit, 1, LIMIT_TOKENS, whole=True)
    seed = _number(body, "seed", 0, 2**63 - 1, whole=True)
    return Request(
        id=id,
        messages=_messages(body.get("messages")) if chat else None,
        prompt="" if chat else _prompt(body.get("prompt")),
        thinking=template.get("enable_thinking") if isinstance(template, Mapping) else None,
        stream=body.get("stream") is True,
        include_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
        max_tokens=DEFAULT_MAX_TOKENS if tokens is None else int(tokens),
        temperature=_number(body, "temperature", 0, 2),
        top_p=_number(body, "top_p", 1e-6, 1),
        seed=None if seed is None else int(seed),
        ignore_eos=body.get("ignore_eos") is True,
        profile_steps=profile_steps,
    )


def _number(body: Mapping[str, Any], name: str, low: float, high: float, whole: bool = False) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    wanted = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, wanted) or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise BadBody(f"{name} must be {kind} from {low:g} to {high:g}", name)
    return value


def _messages(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list) or not value:
        raise BadBody("messages must be a list of at least one message", "messages")
    return tuple(_message(entry) for entry in value)


def _message(entry: Any) -> tuple[str, str]:
    role = entry.get("role") if isinstance(entry, Mapping) else None
    content = entry.get("content") if isinstance(entry, Mapping) else None
    if isinstance(content, list):
        parts = [p.get("text") for p in content if isinstance(p, Mapping) and p.get("type") == "text"]
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(role, str) or not isinstance(content, str):
        raise BadBody("each message needs a role and a content that is text or a list of parts", "messages")
    return role, content


def _prompt(value: Any) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str) or not value:
        raise BadBody("prompt must be one text that is not empty", "prompt")
    return value


class Wording:
    """The JSON of one answer in the style of one endpoint; `created` is Unix time in seconds."""

    def __init__(self, request: Request, served: str, created: int) -> None:
        self._chat = request.messages is not None
        prefix = "chatcmpl" if self._chat else "cmpl"
        self._head = {"id": f"{prefix}-{request.id}", "created": created, "model": served}
        self._object = "chat.completion" if self._chat else "text_completion"

    def opening(self) -> dict[str, Any] | None:
        """The first event of a chat stream; a plain completion has none."""
        return self._event({"delta": {"role": "assistant", "content": ""}}) if self._chat else None

    def piece(self, piece: Piece) -> dict[str, Any]:
        if not self._chat:
            return self._event({"text": piece.text})
        name = "reasoning_content" if piece.kind == "reasoning" else "content"
        return self._event({"delta": {name: piece.text}})

    def closing(self, done: Done) -> dict[str, Any]:
        last: dict[str, Any] = {"delta": {}} if self._chat else {"text": ""}
        return self._event(last, done.reason)

    def usage_event(self, done: Done) -> dict[str, Any]:
        return {**self._head, "object": self._chunk_object(), "choices": [], "usage": usage(done)}

    def whole(self, pieces: list[Piece], done: Done) -> dict[str, Any]:
        """The answer of a request that was not streamed."""
        answer = "".join(piece.text for piece in pieces if piece.kind == "answer")
        choice: dict[str, Any] = {"index": 0, "finish_reason": done.reason}
        if self._chat:
            reasoning = "".join(piece.text for piece in pieces if piece.kind == "reasoning")
            message = {"role": "assistant", "content": answer, "reasoning_content": reasoning or None}
            choice["message"] = message
        else:
            choice["text"] = answer
        return {**self._head, "object": self._object, "choices": [choice], "usage": usage(done)}

    def _chunk_object(self) -> str:
        return self._object + ".chunk" if self._chat else self._object

    def _event(self, payload: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, **payload, "finish_reason": reason}
        return {**self._head, "object": self._chunk_object(), "choices": [choice]}


def usage(done: Done) -> dict[str, int]:
    total = done.prompt_tokens + done.output_tokens
    return {
        "prompt_tokens": done.prompt_tokens,
        "completion_tokens": done.output_tokens,
        "total_tokens": total,
    }
