"""A streaming server on one event loop, with a handler that blocks it.

    [fault]
    use = "scenarios.workloads.blocked_loop"
    blocked_s = 0.4                    # out of every period_s; 0: the healthy twin
    period_s = 0.8

The server is an ordinary aiohttp application in a process of its own; its "model" gives every stream a token
each 20 ms. Run by hand: `python -m scenarios.workloads.blocked_loop 127.0.0.1 8000 0.4 0.8`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from scenarios.workloads import Injection, _serving

STEP_S = 0.02


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    words = [str(options["blocked_s"]), str(options["period_s"])]
    with _serving.program("scenarios.workloads.blocked_loop", words) as url:
        yield Injection(endpoint=url)


def main() -> None:
    from aiohttp import web

    host, port, blocked_s, period_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    app = web.Application()
    app.add_routes(
        [
            web.get("/health", _health),
            web.get("/v1/models", _models),
            web.post("/v1/chat/completions", _chat),
        ]
    )
    app.cleanup_ctx.append(lambda _: _blocking(blocked_s, period_s))
    web.run_app(app, host=host, port=port, print=None)


async def _blocking(blocked_s: float, period_s: float) -> AsyncIterator[None]:
    """The defect: a task of the same loop calls something that does not await."""

    async def run() -> None:
        while True:
            await asyncio.sleep(period_s - blocked_s)
            time.sleep(blocked_s)  # noqa: ASYNC251 - the fault

    task = asyncio.create_task(run()) if blocked_s else None
    yield
    if task:
        task.cancel()


async def _health(_: Any) -> Any:
    from aiohttp import web

    return web.json_response({"status": "ok"})


async def _models(_: Any) -> Any:
    from aiohttp import web

    return web.json_response({"object": "list", "data": [{"id": "steady", "object": "model"}]})


async def _chat(request: Any) -> Any:
    from aiohttp import web

    asked = await request.json()
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    count = int(asked.get("max_tokens", 16))
    for number in range(count):
        await asyncio.sleep(STEP_S)
        await _send(response, {"choices": [{"index": 0, "delta": {"content": f" {number}"}}]})
    await _send(response, {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
    usage = {"prompt_tokens": 48, "completion_tokens": count}
    await _send(response, {"choices": [], "usage": usage})
    await response.write(b"data: [DONE]\n\n")
    return response


async def _send(response: Any, frame: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(frame).encode() + b"\n\n")


if __name__ == "__main__":
    main()
