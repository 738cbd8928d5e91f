"""A server whose truth is known: timed streams that remember when each byte left, and scripted bytes.

    python -m tests.servers.truth --port 0        prints its port; runs until it is killed

    POST /v1/chat/completions              a timed stream, as the flags say
    POST /t/ttft_ms=20&gap_ms=10&tokens=8/v1/chat/completions      the same with other timing; slots=4: so
                                           many at once, others wait; chunk=4: tokens in each chunk
    POST /s/NAME/v1/chat/completions       the bytes of script NAME (SCRIPTS, or one put there by a test);
                                           NAME+NAME+...: one after the other
    PUT  /s/NAME                           a script as JSON steps
    GET  /truth                            {X-Request-Id: {"received_ns": 1, "sent_ns": [2], "prompt": "",
                                           "method": "POST", "path": "/v1/...", "headers": {}, "body": ""}}
    GET  [...]/v1/models, /health          what a client looks at first

Stamps are CLOCK_MONOTONIC, which a client on the same host shares; each token's text is the stamp at which it
was handed to the kernel. Raw sockets through asyncio's streams, so that every framing can be told.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from urllib.request import Request, urlopen

from tests.servers.truth_scripts import (
    CLOSE,
    EXIT,
    JSON,
    RESET,
    SCRIPTS,
    Step,
    error_body,
    head,
    whole,
)
from tests.servers.truth_timed import answer_in_chunks, answer_whole

ROOT = Path(__file__).parents[2]
MODEL = "truth"
LOOKS = ("/v1/models", "/health", "/metrics")  # under a script too, and no turn of it

# ------------------------------------------------------------------------------ the server


@dataclass(slots=True)
class _Server:
    defaults: dict[str, float]
    scripts: dict[str, list[Step]] = field(default_factory=lambda: dict(SCRIPTS))
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    played: int = 0
    turns: dict[float, asyncio.Semaphore] = field(default_factory=dict)  # by their slots

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served = 0
        try:
            while request := await _read_request(reader, writer):
                if not await self._answer(request, served, writer):
                    break
                served += 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: _Request, served: int, writer: asyncio.StreamWriter) -> bool:
        """False when the connection is over."""
        kind, _, rest = request.path.strip("/").partition("/")
        name, _, rest = rest.partition("/") if kind in ("s", "t") else ("", "", "")
        if request.method == "PUT":
            self.scripts[name] = _steps_from(json.loads(request.body))
            return await _play(whole(200, JSON, b"{}"), writer)
        if request.method == "GET" and (kind != "s" or request.path.endswith(LOOKS)):
            return await _play(self._get(request.path), writer)
        self.told[request.headers.get("x-request-id", "")] = told = request.told()
        if kind == "t":
            options = {key: float(value) for key, value in parse_qsl(name)}
            return await self._stream(request, {**self.defaults, **options}, told["sent_ns"], writer)
        if kind == "s":
            return await _play(self._script(name, request, served), writer)
        return await self._stream(request, self.defaults, told["sent_ns"], writer)

    def _get(self, path: str) -> list[Step]:
        if path == "/truth":
            return whole(200, JSON, json.dumps(self.told).encode())
        if path.endswith("/v1/models"):
            return whole(200, JSON, json.dumps({"object": "list", "data": [{"id": MODEL}]}).encode())
        if path.endswith("/health"):
            return whole(200, JSON, b"{}")
        return SCRIPTS["404"]

    def _script(self, name: str, request: _Request, served: int) -> list[Step]:
        names = name.split("+")
        self.played += 1
        name = names[self.played % len(names)]
        if name == "stale" and served:  # a kept-alive connection that is dead when it is used again
            return [CLOSE]
        if name == "refuses-usage" and b"stream_options" in request.body:
            return whole(400, JSON, error_body("Unrecognized request argument supplied: stream_options"))
        if name == "echoes-key":
            key = request.headers.get("authorization", "")
            return whole(401, JSON, error_body(f"Incorrect API key provided: {key}"))
        return self.scripts.get(name, SCRIPTS["good"])

    async def _stream(
        self, request: _Request, options: dict[str, float], sent_ns: list[int], writer: asyncio.StreamWriter
    ) -> bool:
        """Timed from when the request came, or from when it had its turn in a slot."""
        slots = options.get("slots")
        turn = self.turns.setdefault(slots, asyncio.Semaphore(int(slots))) if slots else nullcontext()
        async with turn:
            start_s = time.perf_counter() if slots else request.received_ns / 1e9
            answer = answer_whole if b'"stream":false' in request.body else answer_in_chunks
            await answer(request.body, start_s, options, sent_ns, writer)
        return True


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    received_ns: int

    def told(self) -> dict[str, Any]:
        return {
            "received_ns": self.received_ns,
            "sent_ns": [],
            "prompt": _messages_in(self.body),
            "method": self.method,
            "path": self.path,
            "headers": self.headers,
            "body": self.body.decode("utf-8", "replace"),
        }


def _messages_in(body: bytes) -> str:
    try:
        value = json.loads(body)
    except ValueError:
        return ""
    return str(value.get("messages")) if isinstance(value, dict) else ""


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Request | None:
    start = await reader.read(1)
    if start == b"\x16":  # a TLS client; plain servers answer this in plain text
        writer.write(head(400, "text/plain", "Content-Length: 0\r\n"))
    if start in (b"", b"\x16"):
        return None
    block = start + await reader.readuntil(b"\r\n\r\n")
    first, *lines = block.decode("latin-1").split("\r\n")[:-2]
    method, path, _ = first.split(" ", 2)
    headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return _Request(method, path, headers, body, time.perf_counter_ns())


async def _play(steps: Sequence[Step], writer: asyncio.StreamWriter) -> bool:
    for step in steps:
        if isinstance(step, bytes):
            writer.write(step)
        elif isinstance(step, float):
            await asyncio.sleep(step)
        elif step == RESET:
            linger = struct.pack("ii", 1, 0)  # on, for no time: close() sends RST
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            return False
        elif step == EXIT:
            os._exit(1)
        else:
            return False
    return True


def _steps_from(items: list[dict[str, Any]]) -> list[Step]:
    return [item["text"].encode("latin-1") if "text" in item else item["other"] for item in items]


async def _serve(host: str, port: int, defaults: dict[str, float]) -> None:
    server = await asyncio.start_server(_Server(defaults).converse, host, port, limit=2**24, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ttft-ms", type=float, default=50.0)
    parser.add_argument("--gap-ms", type=float, default=20.0)
    parser.add_argument("--tokens", type=int, default=16)
    args = parser.parse_args()
    defaults = {"ttft_ms": args.ttft_ms, "gap_ms": args.gap_ms, "tokens": args.tokens}
    _runner()(_serve(args.host, args.port, defaults))


def _runner() -> Callable[[Any], Any]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


# ------------------------------------------------------------------------------ for tests and benchmarks


@dataclass(frozen=True, slots=True)
class Truth:
    """A running server. `url` is the endpoint of timed streams."""

    url: str
    pid: int

    def scripted(self, name: str) -> str:
        """The endpoint that answers with a script."""
        return f"{self.url}/s/{name}"

    def timed(self, **options: float) -> str:
        """The endpoint of streams with other timing: ttft_ms, gap_ms, tokens, slots."""
        return f"{self.url}/t/" + "&".join(f"{key}={value}" for key, value in options.items())

    def put(self, name: str, steps: Sequence[Step]) -> str:
        """Register a script; its endpoint."""
        items = [{"text": s.decode("latin-1")} if isinstance(s, bytes) else {"other": s} for s in steps]
        body = json.dumps(items).encode()
        urlopen(Request(f"{self.url}/s/{name}", data=body, method="PUT"), timeout=10).close()
        return self.scripted(name)

    def told(self) -> dict[str, dict[str, Any]]:
        """When each request came and each of its tokens left, by request id, in ns of CLOCK_MONOTONIC."""
        with urlopen(f"{self.url}/truth", timeout=10) as answer:
            return dict(json.loads(answer.read()))


@contextmanager
def serving(*flags: str, host: str = "127.0.0.1", prefix: Sequence[str] = ()) -> Iterator[Truth]:
    """The server in a child process, on a free port. `prefix` is put before its command line."""
    command = [*prefix, sys.executable, "-m", "tests.servers.truth", "--host", host, *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=ROOT) as child:
        assert child.stdout is not None
        try:
            yield Truth(f"http://{host}:{int(child.stdout.readline())}", child.pid)
        finally:
            child.kill()


if __name__ == "__main__":
    main()
