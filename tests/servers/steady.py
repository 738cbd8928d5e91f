"""A server that answers the same question with the same words, at a set pace, and can be made to fail.

    python -m tests.servers.steady --port 8000 [--gap-ms 5] [--tokens 8] [--differ-from 3] ...

`--loading-s`: answers 503 for so long first. `--never`: does not listen at all. `--oom`: ends before it
listens, with the words of an allocator. `--dies-after`: ends in the middle of that answer. `--room FILE`:
ends like that where another server holds that file, as if memory were for one of them.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import sys
import time
import zlib
from pathlib import Path

from aiohttp import web

MODEL = "steady"
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


class Steady:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.answers = args, 0
        self.ready_s = time.monotonic() + args.loading_s

    async def models(self, _: web.Request) -> web.Response:
        if time.monotonic() < self.ready_s:
            return web.json_response({"error": "loading"}, status=503)
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.answers += 1
        dies = self.answers == self.args.dies_after
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for index, word in enumerate(self.words(body)):
            await asyncio.sleep(self.args.gap_ms / 1e3)
            if dies and index == 2:
                print("steady: a last word before it dies", flush=True)
                os._exit(1)
            await self.send(response, {"index": 0, "delta": {"content": f" {word}"}})
        await self.send(response, {"index": 0, "delta": {}, "finish_reason": "length"})
        usage = {"prompt_tokens": 8, "completion_tokens": self.count(body)}
        await response.write(f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    def count(self, body: dict) -> int:
        return min(int(body.get("max_tokens") or self.args.tokens), self.args.tokens)

    def words(self, body: dict) -> list[str]:
        """By the question alone; from a token on they are others, where that is asked for."""
        seed = zlib.crc32(body["messages"][-1]["content"].encode())
        words = [f"{(seed * (i + 1)) % 9973}" for i in range(self.count(body))]
        start = self.args.differ_from
        return words if start is None else [*words[:start], *(f"x{w}" for w in words[start:])]

    async def send(self, response: web.StreamResponse, choice: dict) -> None:
        await response.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--gap-ms", type=float, default=4.0)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--differ-from", type=int)
    parser.add_argument("--loading-s", type=float, default=0.0)
    parser.add_argument("--dies-after", type=int)
    parser.add_argument("--never", action="store_true")
    parser.add_argument("--oom", action="store_true")
    parser.add_argument("--room", type=Path)
    parser.add_argument("--api-key", help="printed, as some servers print their arguments")
    args = parser.parse_args()
    print(f"steady: starting with {sys.argv[1:]}", flush=True)
    room = args.room.open("a") if args.room else None
    try:
        if room:
            fcntl.flock(room, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        args.oom = True
    if args.oom:
        print(OUT_OF_MEMORY, flush=True)
        raise SystemExit(1)
    while args.never:
        time.sleep(0.1)
    steady, app = Steady(args), web.Application()
    app.add_routes([web.get("/v1/models", steady.models), web.post("/v1/chat/completions", steady.chat)])
    web.run_app(app, host="127.0.0.1", port=args.port, print=None, access_log=None)


if __name__ == "__main__":
    main()
