"""A server with a paged KV cache of a chosen size: too small, or just large enough.

    [fault]
    use = "scenarios.workloads.paged"
    blocks = 40                        # of 16 tokens; a request needs (prompt + answer) / 16
    most_sequences = 16                # served together
    link = "1mbit"                     # optional: the client is behind a link of this rate. Needs root

What it computes is real (see paged_engine.py). Its /metrics page uses the names that vLLM gave to the same
quantities. By hand: `python -m scenarios.workloads.paged 127.0.0.1 8000 40 16`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from scenarios.workloads import Injection, _link, _serving

if TYPE_CHECKING:
    from aiohttp import web

    from scenarios.workloads.paged_engine import Counters, Engine

STAMPS = {
    "queue": "request_queue_time_seconds",
    "prefill": "request_prefill_time_seconds",
    "decode": "request_decode_time_seconds",
    "ttft": "time_to_first_token_seconds",
    "e2e": "e2e_request_latency_seconds",
}
WORD_CHARACTERS = 5  # about a token


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    words = [str(options["blocks"]), str(options["most_sequences"])]
    with contextlib.ExitStack() as stack:
        host, prefix = "127.0.0.1", ()
        if link := options.get("link"):
            host, prefix = stack.enter_context(_link.another_host(str(link)))
        url = stack.enter_context(_serving.program("scenarios.workloads.paged", words, host, prefix))
        yield Injection(endpoint=url)


def page(engine: Engine) -> str:
    """The /metrics text."""
    counters: Counters = engine.counters
    values = {
        "num_requests_running": len(engine.running),
        "num_requests_waiting": len(engine.waiting),
        "kv_cache_usage_perc": 1 - engine.free / engine.blocks,
        "num_preemptions_total": counters.preemptions,
        "prompt_tokens_total": counters.prompt_tokens,
        "generation_tokens_total": counters.output_tokens,
        "request_success_total": counters.finished,
        "iteration_tokens_total_count": counters.steps,
    }
    for ours, name in STAMPS.items():
        values |= {f"{name}_sum": counters.sums[ours], f"{name}_count": counters.finished}
    return "".join(f'vllm:{name}{{model_name="paged"}} {value}\n' for name, value in values.items())


async def _chat(request: web.Request) -> web.StreamResponse:
    from aiohttp import web

    from scenarios.workloads.paged_engine import Sequence

    body = await request.json()
    text = "".join(str(m["content"]) for m in body["messages"])
    loop, tokens = asyncio.get_running_loop(), asyncio.Queue[bool]()
    sequence = Sequence(
        prompt=max(1, len(text) // WORD_CHARACTERS),
        wanted=int(body.get("max_tokens") or body.get("max_completion_tokens") or 16),
        emit=lambda last: loop.call_soon_threadsafe(tokens.put_nowait, last) and None,
        arrived_s=time.monotonic(),
    )
    request.app["engine"].submit(sequence)
    try:
        if not body.get("stream"):
            while not await tokens.get():
                pass
            return web.json_response(_answer(sequence, "message", " word" * sequence.done, "length"))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        last = False
        while not last:
            last = await tokens.get()
            await _write(response, _answer(sequence, "delta", " word", "length" if last else None))
        await _write(response, {"id": "1", "choices": [], "usage": _usage(sequence)})
        await response.write(b"data: [DONE]\n\n")
        return response
    finally:
        sequence.cancelled = True


async def _write(response: web.StreamResponse, chunk: Mapping[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")


def _answer(sequence: Any, field: str, text: str, reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, field: {"role": "assistant", "content": text}, "finish_reason": reason}
    whole = {"usage": _usage(sequence)} if field == "message" else {}
    return {"id": "1", "object": "chat.completion", "model": "paged", "choices": [choice], **whole}


def _usage(sequence: Any) -> dict[str, int]:
    return {
        "prompt_tokens": sequence.prompt,
        "completion_tokens": sequence.done,
        "total_tokens": sequence.length,
    }


def main() -> None:
    from aiohttp import web

    from scenarios.workloads.paged_engine import Engine

    host, port, blocks, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    engine = Engine(blocks, most)
    threading.Thread(target=engine.run, name="engine", daemon=True).start()
    app = web.Application()
    app["engine"] = engine

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "paged", "owned_by": "vllm"}]})

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(text=page(engine))

    app.add_routes(
        [
            web.get("/v1/models", models),
            web.get("/metrics", metrics),
            web.get("/health", lambda _: _healthy()),
            web.post("/v1/chat/completions", _chat),
        ]
    )
    web.run_app(app, host=host, port=port, print=None, access_log=None)


async def _healthy() -> web.Response:
    from aiohttp import web

    return web.Response()


if __name__ == "__main__":
    main()
