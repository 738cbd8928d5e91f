"""One HTTP/1.1 connection: bytes in the event loop's callback, framing by httptools, stamps before anything.

llhttp (in httptools) does the framing: chunks, lengths, keep-alive. What it cannot know is an end without
framing: a body that lasts until the connection closes.
"""

from __future__ import annotations

import asyncio
import time
from typing import cast

import httptools

from perfdoctor.loadgen.transports._transport import Failure, Sink

HEADER_BYTES = 2**18  # of one response's head; llhttp has no limit of its own
SHOWN_BYTES = 60  # of an answer that is no HTTP
_NO_BODY = {204, 304}


class Died(Exception):
    """The connection ended before the first byte of the answer. `error` is what the system said."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(str(error or "the server closed the connection"))
        self.error = error


class Connection(asyncio.Protocol):
    """Carries one request at a time. `ask` sends it and returns when its answer has ended."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._sink: Sink | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._at_ns = 0  # of the read that is being looked at
        self._headers: dict[str, str] = {}
        self._header_bytes = 0
        self._answered = False  # a byte of the present answer has come
        self._headed = False  # its head is complete
        self._wanted = True  # its body is still wanted
        self.reusable = False
        self.closed = False
        self.written_ns = 0

    # -- asking

    async def ask(self, message: bytes, sink: Sink, idle_s: float | None, tail_s: float) -> None:
        """Raises Died before, and Failure after the first byte of the answer."""
        self._sink, self._waiter = sink, self._loop.create_future()
        self._answered = self._headed = self.reusable = False
        self._wanted = True
        self._tail_s = tail_s
        self._at_ns = time.perf_counter_ns()
        self._transport.write(message)
        self.written_ns = time.perf_counter_ns()
        idle = self._loop.call_later(idle_s, self._check_idle, idle_s) if idle_s else None
        self._idle = idle
        try:
            await self._waiter
        except BaseException:
            self.close()
            raise
        finally:
            self._sink = self._waiter = None
            if self._idle:
                self._idle.cancel()
        if not self.reusable:
            self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._transport.abort()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._at_ns = time.perf_counter_ns()
        if self._waiter is None:  # nobody asked: a server that talks by itself is not to be trusted
            self.close()
            return
        self._answered = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._end(Failure("bad_stream", "the server switched to another protocol"))
        except httptools.HttpParserCallbackError as error:
            self._end(cast(Exception, error.__context__ or error))
        except httptools.HttpParserError as error:
            shown = "" if self._headed else f": {data[:SHOWN_BYTES]!r}"
            self._end(Failure("bad_stream", f"the answer is no HTTP/1.1 ({error}){shown}"))

    def eof_received(self) -> bool:
        return False  # the transport closes itself, and connection_lost follows

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._waiter is None or self._waiter.done():
            return
        if not self._answered:
            self._end(Died(exc))
        elif exc is not None:
            self._end(Failure("reset", str(exc) or type(exc).__name__))
        elif self._headed and self._until_close:
            self._end(None)
        else:
            self._end(Failure("truncated", "the connection ended in the middle of the answer"))

    # -- httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > HEADER_BYTES:
            raise Failure("bad_stream", f"the head of the answer exceeds {HEADER_BYTES // 1024} KiB")
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status, headers = self._parser.get_status_code(), self._headers
        self._headers, self._header_bytes = {}, 0
        if status < 200:  # 100 Continue and the like: the answer is still to come
            return
        self._headed = True
        self._until_close = (
            "content-length" not in headers
            and "chunked" not in headers.get("transfer-encoding", "").lower()
            and status not in _NO_BODY
        )
        if self._sink:
            self._sink.on_head(status, headers, self._at_ns)

    def on_body(self, body: bytes) -> None:
        if self._wanted and self._sink and self._sink.on_body(body, self._at_ns):
            self._wanted = False
            # the end of the body is worth a moment, since the connection can then be used again
            self._idle_tail()

    def on_message_complete(self) -> None:
        if not self._headed:
            return
        self.reusable = self._parser.should_keep_alive() and not self._until_close
        self._end(None)

    # -- ends

    def _idle_tail(self) -> None:
        if self._idle:
            self._idle.cancel()
        self._idle = self._loop.call_later(self._tail_s, self._end, None)

    def _check_idle(self, idle_s: float) -> None:
        left_s = idle_s - (time.perf_counter_ns() - self._at_ns) / 1e9
        if left_s <= 0:
            self._end(Failure("timeout", f"nothing came for {idle_s:g} s"))
        else:
            self._idle = self._loop.call_later(left_s, self._check_idle, idle_s)

    def _end(self, error: Exception | None) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if error is None:
            self._waiter.set_result(None)
        else:
            self._waiter.set_exception(error)
