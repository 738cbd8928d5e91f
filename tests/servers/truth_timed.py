"""Answers of known timing: each chunk's text is the stamp at which it was handed to the kernel."""

from __future__ import annotations

import asyncio
import json
import time

from tests.servers.truth_scripts import CHUNKED_HEAD, DONE, JSON, LAST_CHUNK, ROLE, chunk, delta, head, usage

# as long as a real frame: 230 bytes with its stamp
_FRAME = (
    b'data: {"id":"chatcmpl-b48a446c6ea53c39","object":"chat.completion.chunk","created":1796067623,'
    b'"model":"truth","choices":[{"index":0,"delta":{"content":"%d"},"logprobs":null,"finish_reason":null}]%b}\n\n'
)


def _token(stamp_ns: int, tokens: int | None) -> bytes:
    """`tokens`: how many there are by now, told in the frame."""
    counts = b"" if tokens is None else b',"usage":{"prompt_tokens":7,"completion_tokens":%d}' % tokens
    return _FRAME % (stamp_ns, counts)


async def answer_in_chunks(
    asked: bytes,
    start_s: float,
    options: dict[str, float],
    sent_ns: list[int],
    writer: asyncio.StreamWriter,
) -> None:
    """Tokens due at fixed instants; a late wake-up does not move the next one."""
    per_chunk, size = b"continuous_usage_stats" in asked, int(options.get("chunk", 1))
    writer.write(CHUNKED_HEAD + chunk(ROLE))
    tokens = 0
    for due_s in _dues(start_s, options):
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        tokens += size
        stamp_ns = time.perf_counter_ns()
        writer.write(chunk(_token(stamp_ns, tokens if per_chunk else None)))
        sent_ns.append(stamp_ns)
    tail = usage(tokens) if b"include_usage" in asked else b""
    writer.write(chunk(delta("length") + tail + DONE) + LAST_CHUNK)


async def answer_whole(
    asked: bytes,
    start_s: float,
    options: dict[str, float],
    sent_ns: list[int],
    writer: asyncio.StreamWriter,
) -> None:
    """The same answer, not streamed: its bytes leave when its last token is due."""
    *_, due_s = _dues(start_s, options)
    await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
    sent_ns.append(time.perf_counter_ns())
    tokens = int(options["tokens"])
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "truth " * tokens},
        "finish_reason": "length",
    }
    counts = {"prompt_tokens": 7, "completion_tokens": tokens}
    body = json.dumps({"choices": [choice], "usage": counts}).encode()
    writer.write(head(200, JSON, f"Content-Length: {len(body)}\r\n") + body)


def _dues(start_s: float, options: dict[str, float]) -> list[float]:
    """When each chunk is due, on the clock of perf_counter."""
    chunks = int(options["tokens"] // options.get("chunk", 1))
    return [start_s + (options["ttft_ms"] + i * options["gap_ms"]) / 1e3 for i in range(chunks)]
