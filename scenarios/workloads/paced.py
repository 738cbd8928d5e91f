"""A server that is never the bottleneck: it sends tokens at a fixed pace, whatever the load.

By hand: `python -m scenarios.workloads.paced --port 8110 --pace 0.005`. Knows the chat stream
only. Token n is due n * pace after the request arrived: a late one does not push the following ones back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = "paced"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n\r\n"


@contextmanager
def serving(pace_s: float, core: int) -> Iterator[str]:
    """The server in a process of its own, pinned to a core; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    words = ["--port", str(port), "--pace", str(pace_s), "--core", str(core)]
    command = [sys.executable, "-m", "scenarios.workloads.paced", *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    try:
        assert child.stdout
        child.stdout.readline()  # it says so when it listens
        yield f"http://127.0.0.1:{port}"
    finally:
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()


async def tokens(count: int, pace_s: float) -> AsyncIterator[int]:
    start_s = time.monotonic()
    for n in range(count):
        await asyncio.sleep(start_s + (n + 1) * pace_s - time.monotonic())
        yield n


def event(delta: dict[str, str], finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "x", "object": "chat.completion.chunk", "model": MODEL, "choices": [choice], **more}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


async def answer(body: dict[str, object], pace_s: float, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD % b"text/event-stream")
    count = int(str(body.get("max_tokens") or 16))
    async for n in tokens(count, pace_s):
        writer.write(event({"content": f" w{n}"}))
        await writer.drain()
    usage = {"prompt_tokens": 8, "completion_tokens": count, "total_tokens": 8 + count}
    writer.write(event({}, "length", usage=usage) + b"data: [DONE]\n\n")


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pace_s: float) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lengths = [
            line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length")
        ]
        raw = await reader.readexactly(int(lengths[0])) if lengths else b"{}"
        if head.startswith("POST /v1/chat/completions"):
            await answer(json.loads(raw), pace_s, writer)
        elif head.startswith("GET /v1/models"):
            listed = {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
            writer.write(HEAD % b"application/json" + json.dumps(listed).encode())
        else:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client went away
    finally:
        writer.close()


async def serve(port: int, pace_s: float) -> None:
    server = await asyncio.start_server(lambda r, w: handle(r, w, pace_s), "127.0.0.1", port, backlog=512)
    print("listening", port, flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pace", type=float, default=0.005, help="seconds between tokens")
    parser.add_argument("--core", type=int, help="run on this core only")
    args = parser.parse_args()
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    asyncio.run(serve(args.port, args.pace))


if __name__ == "__main__":
    main()
