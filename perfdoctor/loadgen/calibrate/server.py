"""A server that streams at an exact pace and remembers when it sent each event. Run as a child process.

    python -m perfdoctor.loadgen.calibrate.server TOKENS_PER_S      0: as fast as they are taken

It prints its port. When its standard input ends it prints one JSON document and is gone: of each stream the
request's id, the instants at which its events were due and those at which they were written (perf_counter_ns,
CLOCK_MONOTONIC, which all processes of a host share); and its share of a core. Nothing is told before, since
neither end is to do anything but stream while it is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
from typing import Any, cast

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: keep-alive\r\n\r\n"
)
FIRST_S = 0.02  # to the first token
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ID = re.compile(rb"\r\nx-request-id: *(\d+)", re.IGNORECASE)
_TOKENS = re.compile(rb'"max_tokens": *(\d+)')


def chunk(data: bytes) -> bytes:
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


TOKEN = chunk(b'{"choices":[{"index":0,"delta":{"content":" token"}}]}')
DONE = chunk(b"[DONE]") + b"0\r\n\r\n"


def ending(tokens: int) -> bytes:
    finish = b'{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}'
    usage = b'{"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":%d}}' % tokens
    return chunk(finish) + chunk(usage) + DONE


class Log:
    """What is told at the end. The share of a core is from the first request to the last event."""

    def __init__(self) -> None:
        self.streams: list[dict[str, Any]] = []
        self._begun: tuple[float, float] | None = None
        self._cpu_share: float | None = None

    def begin(self, stream: dict[str, Any]) -> None:
        """`stream` is kept as it is, and grows while it is sent."""
        self.streams.append(stream)
        self._begun = self._begun or (time.perf_counter(), time.process_time())

    def end(self) -> None:
        if self._begun:
            began_s, cpu_s = self._begun
            self._cpu_share = (time.process_time() - cpu_s) / max(1e-9, time.perf_counter() - began_s)

    def told(self) -> str:
        return json.dumps({"cpu_share": self._cpu_share, "streams": self.streams})


class Stream(asyncio.Protocol):
    """One connection: a request, its paced events, the next request."""

    def __init__(self, gap_ns: int, log: Log) -> None:
        self._gap_ns, self._log = gap_ns, log
        self._loop = asyncio.get_running_loop()
        self._read = b""
        self._blocked = self._held = False  # by a full socket; whether an event waits for it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, mark, body = self._read.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not mark or (length and len(body) < int(length[1])):
            return
        self._read = b""
        number, tokens = _ID.search(head), _TOKENS.search(body)
        self._begin(int(number[1]) if number else 0, int(tokens[1]) if tokens else 1)

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        if self._held:
            self._held = False
            self._arm()

    def _begin(self, number: int, tokens: int) -> None:
        first_ns = time.perf_counter_ns() + int(FIRST_S * 1e9)
        self._due_ns = [first_ns + i * self._gap_ns for i in range(tokens)]
        self._sent_ns: list[int] = []
        self._log.begin({"id": number, "due_ns": self._due_ns, "sent_ns": self._sent_ns})
        self._transport.write(HEAD)
        self._arm()

    def _arm(self) -> None:
        left_s = (self._due_ns[len(self._sent_ns)] - time.perf_counter_ns()) / 1e9
        self._loop.call_later(max(0.0, left_s), self._send)

    def _send(self) -> None:
        if self._transport.is_closing():
            return
        self._sent_ns.append(time.perf_counter_ns())
        self._transport.write(TOKEN)
        if len(self._sent_ns) == len(self._due_ns):
            self._transport.write(ending(len(self._sent_ns)))
            self._log.end()
        elif self._blocked:
            self._held = True
        else:
            self._arm()


async def serve(tokens_per_s: float) -> None:
    loop = asyncio.get_running_loop()
    gap_ns, log = int(1e9 / tokens_per_s) if tokens_per_s else 0, Log()
    server = await loop.create_server(lambda: Stream(gap_ns, log), "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - the child's answer to its parent
    await loop.run_in_executor(None, sys.stdin.read)  # until the parent asks, or is gone
    with contextlib.suppress(BrokenPipeError):
        print(log.told(), flush=True)  # noqa: T201


def main() -> None:
    from perfdoctor.loadgen.loop import run

    run(serve(float(sys.argv[1])))


if __name__ == "__main__":
    main()
