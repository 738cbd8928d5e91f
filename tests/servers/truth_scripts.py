"""What servers send, as bytes: the good stream, its legal variations, and every way to fail."""

from __future__ import annotations

import json
from typing import Any

# A step of a script: bytes to send; seconds to wait; or how the connection ends.
Step = bytes | float | str
CLOSE, RESET, EXIT = "close", "reset", "exit"


def head(status: int = 200, kind: str = "text/event-stream", extra: str = "", version: str = "1.1") -> bytes:
    kind_line = f"Content-Type: {kind}\r\n" if kind else ""
    return f"HTTP/{version} {status} Scripted\r\n{kind_line}{extra}\r\n".encode()


CHUNKED_HEAD = head(extra="Transfer-Encoding: chunked\r\n")
LAST_CHUNK = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


def stream(*body: bytes) -> list[Step]:
    """A whole chunked response, one write for each piece, a little apart so that each is its own read."""
    steps: list[Step] = [CHUNKED_HEAD]
    for piece in body:
        steps += [chunk(piece), 0.002]
    return [*steps, LAST_CHUNK]


def whole(status: int, kind: str, body: bytes, extra: str = "") -> list[Step]:
    return [head(status, kind, f"Content-Length: {len(body)}\r\n{extra}") + body]


def frame(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def delta(finish: str | None = None, **members: Any) -> bytes:
    return frame({"choices": [{"index": 0, "delta": members, "finish_reason": finish}]})


def usage(output: int, **more: Any) -> bytes:
    counts = {"prompt_tokens": 7, "completion_tokens": output, "total_tokens": 7 + output}
    return frame({"choices": [], "usage": counts, **more})


def event(kind: str, **members: Any) -> bytes:
    """An event of the Responses API, with its name on a line of its own as servers send it."""
    return f"event: {kind}\n".encode() + frame({"type": kind, **members})


def ended(kind: str = "completed", **members: Any) -> bytes:
    counts = {"input_tokens": 7, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 5}}
    return event(f"response.{kind}", response={"status": kind, "usage": counts, **members})


ROLE = delta(role="assistant", content="")
TOKENS = [delta(content=text) for text in ("one", " two", " three")]
FINISH = delta("stop")
GOOD = [ROLE, *TOKENS, FINISH, usage(3), DONE]


def error_body(message: str, **more: Any) -> bytes:
    return json.dumps({"error": {"message": message, **more}}).encode()


HTML = b"<!DOCTYPE html><html><title>Welcome to nginx!</title></html>"
JSON = "application/json"
UNKNOWN = error_body("The model `nope` does not exist. Valid aliases: tiny.", type="NotFoundError", code=404)
SSE_HEAD = head(extra="Connection: close\r\n")

WHOLE = json.dumps({
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "a b c"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3},
}).encode()  # fmt: skip
CREATED = event("response.created", response={"status": "in_progress"})
THOUGHT = event("response.reasoning_text.delta", delta="hm")
SAID = [event("response.output_text.delta", delta=text) for text in ("one", " two")]
CALL = {"type": "function_call", "name": "look_up", "arguments": ""}

SCRIPTS: dict[str, list[Step]] = {
    "good": stream(*GOOD),
    "html": whole(200, "text/html", HTML),
    "json": whole(200, JSON, b'{"choices":[{"message":{"content":"all at once"}}]}'),
    "400": whole(400, JSON, error_body("request (36014 tokens) exceeds the available context size (4096)")),
    "401": whole(401, JSON, error_body("Incorrect API key provided.")),
    "404": whole(404, JSON, b'{"detail":"Not Found"}'),
    "unknown-model": whole(404, JSON, UNKNOWN),
    "429": whole(429, JSON, error_body("Rate limit reached"), "Retry-After: 1\r\n"),
    "500": whole(500, "text/plain", b"Internal Server Error"),
    "redirect": whole(302, "text/html", b"", "Location: /elsewhere\r\n"),
    "empty": stream(),
    "bare-done": stream(ROLE, DONE),
    "finish-only": stream(ROLE, FINISH, usage(0), DONE),
    "truncated": stream(ROLE, *TOKENS),
    "torn-frame": stream(ROLE, *TOKENS, b'data: {"choices":[{"del'),
    "cut-chunk": [CHUNKED_HEAD, chunk(TOKENS[0]), 0.01, CLOSE],
    "reset": [CHUNKED_HEAD, chunk(TOKENS[0]), 0.01, RESET],
    "closed-at-once": [CLOSE],
    "error-first": stream(frame({"error": {"message": "out of memory"}})),
    "error-later": stream(ROLE, *TOKENS, frame({"error": {"message": "engine died"}}), DONE),
    "bad-json": stream(ROLE, TOKENS[0], b"data: {nonsense}\n\n"),
    "bad-chunks": [CHUNKED_HEAD, chunk(TOKENS[0]), 0.01, b"xyz\r\nnot a chunk\r\n", 0.01, CLOSE],
    "not-http": [b"220 mail.example.com ESMTP\r\n", CLOSE],
    "hangs": [CHUNKED_HEAD, chunk(ROLE), chunk(TOKENS[0]), 30.0],
    "exit": [CHUNKED_HEAD, chunk(TOKENS[0]), 0.05, EXIT],
    "comments": stream(
        b": hello\n\n", ROLE, b": ping 1/2\n" + TOKENS[0], *TOKENS[1:], b": ping\n\n", FINISH, DONE
    ),
    "keepalive-data": stream(b"data: : keepalive\n\n", ROLE, *TOKENS, FINISH, DONE),
    "null-choices": stream(ROLE, *TOKENS, frame({"choices": None}), FINISH, usage(3), DONE),
    "no-done": stream(ROLE, *TOKENS, FINISH),
    "usage-in-finish": stream(
        ROLE,
        *TOKENS,
        frame({
            "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }),
    ),
    "merged": stream(ROLE, delta(content="one two"), delta(content=" three four"), FINISH, usage(4), DONE),
    "llamacpp": stream(
        ROLE,
        delta(reasoning_content="hm"),
        *TOKENS,
        delta("length"),
        usage(4, timings={"prompt_ms": 1.5, "predicted_ms": 8, "cache_n": 0}),
        DONE,
    ),
    "prompt-tail": [
        CHUNKED_HEAD,
        chunk(ROLE + delta(reasoning_content="\n")),
        0.08,
        *(step for text in "abc" for step in (chunk(delta(reasoning_content=text)), 0.004)),
        chunk(delta("length") + usage(3)),
        LAST_CHUNK,
    ],
    "http-1.0": [head(version="1.0"), *GOOD, CLOSE],
    "http-1.0-no-type": [head(kind="", version="1.0"), *GOOD, CLOSE],
    "closes-after-stream": [
        head(extra="Transfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n"),
        *(chunk(piece) for piece in GOOD),
        LAST_CHUNK,
        CLOSE,
    ],
    "no-last-chunk": [CHUNKED_HEAD, *(chunk(piece) for piece in GOOD), 0.01, CLOSE],
    "never-ends": [CHUNKED_HEAD, *(chunk(piece) for piece in GOOD), 30.0],
    "tool-call-only": stream(
        ROLE,
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "look_up", "arguments": ""}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}]),
        delta("tool_calls"),
        usage(2),
        DONE,
    ),
    "reasoning-first": [
        CHUNKED_HEAD,
        *(step for _ in range(5) for step in (chunk(delta(reasoning="hm")), 0.02)),
        chunk(TOKENS[0]), 0.02, chunk(delta("stop") + usage(6) + DONE), LAST_CHUNK,
    ],
    "one-token": stream(ROLE, TOKENS[0], delta("length"), usage(1), DONE),
    "two-choices": stream(
        *(frame({"choices": [{"index": i, "delta": {"content": "a"}}]}) for i in (0, 1, 0, 1)),
        *(frame({"choices": [{"index": i, "delta": {}, "finish_reason": "stop"}]}) for i in (0, 1)),
        usage(4),
        DONE,
    ),
    "half-of-two-choices": stream(
        *(frame({"choices": [{"index": i, "delta": {"content": "a"}}]}) for i in (0, 1)),
        frame({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    ),
    "responses-good": stream(CREATED, THOUGHT, *SAID, ended()),
    "responses-cut-by-limit": stream(
        CREATED, *SAID, ended("incomplete", incomplete_details={"reason": "max_output_tokens"})
    ),
    "responses-call": stream(
        CREATED,
        event("response.output_item.added", item=CALL),
        event("response.function_call_arguments.delta", delta="{}"),
        ended(),
    ),
    "responses-truncated": stream(CREATED, *SAID, DONE),
    "responses-error-first": stream(CREATED, event("error", message="out of memory")),
    "responses-failed": stream(
        CREATED, *SAID, event("response.failed", response={"error": {"message": "died"}})
    ),
    "whole": whole(200, JSON, WHOLE),
    "whole-without-usage": whole(200, JSON, b'{"choices":[{"message":{"content":"a b c"}}]}'),
    "whole-error": whole(200, JSON, error_body("out of memory")),
    "whole-cut": [head(200, JSON, f"Content-Length: {len(WHOLE)}\r\n") + WHOLE[:-9], CLOSE],
    "text": whole(200, "text/plain", b"hello"),
    "204": [b"HTTP/1.1 204 No Content\r\n\r\n"],
    "any-events": stream(b"data: one\n\n", b": keepalive\n\n", b"data: two\n\n"),
}  # fmt: skip
