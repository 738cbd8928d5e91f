"""One HTTP/1.1 connection: bytes in the event loop's callback, framing by httptools, stamps before anything.

llhttp (in httptools) does the framing: chunks, lengths, keep-alive. What it cannot know is told here: the end
of a body that lasts until the connection closes, that a HEAD request has no body, and that one answer was
asked for and not two.

Answers in one piece are mostly alike to the last byte of their head. Such a head is recognised by comparing
bytes, which costs a fifth of parsing it (see _heads.py). Doing the same with chunks was tried: httptools
takes less for a chunk than a comparison does.
"""

from __future__ import annotations

import asyncio
import time
from typing import cast

import httptools

from perfdoctor.loadgen.transports._heads import Head, Heads
from perfdoctor.loadgen.transports._transport import Failure, Sink, Take

BARREN_BYTES = 2**18  # without a byte of body: no head, trailer or chunk extension is that long
SHOWN_BYTES = 60  # of an answer that is no HTTP
TAIL_S = 1.0  # after [DONE]: how long to wait for the end that lets the connection be reused
_NO_BODY = {204, 304}


class Died(Exception):
    """The connection ended before the first byte of the answer. `error` is what the system said."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(str(error or "the server closed the connection"))
        self.error = error


class Connection(asyncio.Protocol):
    """Carries one request at a time. `ask` sends it and returns when its answer has ended."""

    def __init__(self, heads: Heads) -> None:
        self._loop = asyncio.get_running_loop()
        self._heads = heads
        self._parser = _make_parser(self)
        self._waiter: asyncio.Future[None] | None = None  # None: no answer is expected
        self._headers: dict[str, str] = {}
        self._sink: Sink | None = None
        self._take: Take = _nowhere
        self.closed = False
        self.reusable = False
        self.written_ns: int | None = None
        self._at_ns = 0  # of the read that is being looked at

    # -- asking

    async def ask(self, message: bytes, sink: Sink, idle_s: float | None, bodiless: bool = False) -> None:
        """Raises Died before, and Failure after the first byte of the answer, which is `bodiless` to HEAD."""
        self._sink, self._take, self._bodiless = sink, _nowhere, bodiless
        self._headers = {}
        self._pieces = 0  # of the body
        self._barren = 0  # bytes since the last of them
        self._began = self._headed = self._wanted = self.reusable = False
        self._idle: asyncio.TimerHandle | None = None
        waiter = self._waiter = self._loop.create_future()
        self._at_ns = time.perf_counter_ns()
        self._transport.write(message)
        self.written_ns = None if self._writing else time.perf_counter_ns()
        if idle_s:
            self._idle = self._loop.call_later(idle_s, self._check_idle, idle_s)
        try:
            await waiter
        except BaseException:
            self.close()
            raise
        finally:
            self._waiter = self._sink = None
            self._take = _nowhere
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
        self._writing = False
        # So that what does not fit into the kernel at once is told by pause_writing. TLS tells it of every
        # write, and that it is over only with the end of the answer.
        if transport.get_extra_info("sslcontext") is None:
            self._transport.set_write_buffer_limits(0)

    def pause_writing(self) -> None:
        self._writing = True

    def resume_writing(self) -> None:
        self._writing = False
        if not self._began:
            self.written_ns = time.perf_counter_ns()

    def data_received(self, data: bytes) -> None:
        self._at_ns = time.perf_counter_ns()
        waiter = self._waiter
        if waiter is None or waiter.done():  # nobody asked: a server that talks by itself is not trusted
            self.reusable = False
            self.close()
            return
        if not self._began:
            self._began = True
            known = self._heads.match(data)
            if known and not self._bodiless:
                self._take_whole(data, known)
                return
        self._feed(data, waiter)

    def eof_received(self) -> bool:
        return False  # the transport closes itself, and connection_lost follows

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._waiter is None or self._waiter.done():
            self.reusable = False
        elif not self._began:
            self._end(Died(exc))
        elif exc is not None:
            self._end(Failure("reset", str(exc) or type(exc).__name__))
        elif self._headed and self._until_close:
            self._end(None)
        else:
            self._end(Failure("truncated", "the connection ended in the middle of the answer"))

    # -- parsing

    def _take_whole(self, data: bytes, head: Head) -> None:
        try:
            if self._sink:
                take = self._sink.on_head(head.status, head.headers, self._at_ns)
                if len(data) > head.size:
                    take(data[head.size :], self._at_ns)
        except Exception as error:  # what reading the body may raise is its reader's business
            self._end(error)
            return
        self.reusable = True
        self._end(None)

    def _feed(self, data: bytes, waiter: asyncio.Future[None]) -> None:
        self._barren += len(data)
        fresh = not self._headed
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._end(Failure("bad_stream", "the server switched to another protocol"))
        except httptools.HttpParserCallbackError as error:
            self._end(cast(Exception, error.__context__ or error))
        except httptools.HttpParserError as error:
            shown = "" if self._headed else f": {data[:SHOWN_BYTES]!r}"
            self._end(Failure("bad_stream", f"the answer is no HTTP/1.1 ({error}){shown}"))
        else:
            if fresh and waiter.done():
                self._learn(data)
            elif self._barren > BARREN_BYTES:
                self._end(Failure("bad_stream", f"{BARREN_BYTES // 1024} KiB came without a byte of body"))

    def _learn(self, data: bytes) -> None:
        """The head of an answer that came whole in this read, if all of it did."""
        if self.reusable and not self._bodiless and self._pieces < 2:
            self._heads.learn(data, self._body_bytes if self._pieces else 0, self._status, self._headers)

    def on_message_begin(self) -> None:
        if self._headed:  # a second answer in the same read
            self.reusable = False
            self._wanted = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._headed:  # later ones are trailers
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headed:
            return
        status, headers = self._parser.get_status_code(), self._headers
        if status < 200:  # 100 Continue and the like: the answer is still to come
            self._headers = {}
            return
        self._headed = self._wanted = True
        self._status = status
        self._until_close = (
            "content-length" not in headers
            and "chunked" not in headers.get("transfer-encoding", "").lower()
            and status not in _NO_BODY
        )
        if self._sink:
            self._take = self._sink.on_head(status, headers, self._at_ns)
        if self._bodiless:
            self.reusable = self._parser.should_keep_alive()
            self._parser = _make_parser(self)  # the old one waits for the body that the head speaks of
            self._end(None)

    def on_body(self, body: bytes) -> None:
        self._barren = 0
        self._pieces += 1
        self._body_bytes = len(body)
        if self._wanted and self._take(body, self._at_ns):
            self._wanted = False
            # the end of the body is worth a moment, since the connection can then be used again
            if self._idle:
                self._idle.cancel()
            self._idle = self._loop.call_later(TAIL_S, self._end, None)

    def on_message_complete(self) -> None:
        if not self._headed or self._waiter is None or self._waiter.done():
            return
        self.reusable = self._parser.should_keep_alive() and not self._until_close
        self._end(None)

    # -- ends

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


def _nowhere(read: bytes, at_ns: int) -> bool:
    return True


def _make_parser(connection: Connection) -> httptools.HttpResponseParser:
    parser = httptools.HttpResponseParser(connection)
    # Servers that end lines in LF alone, fold a header or pad a chunk's size are odd, not wrong to measure.
    parser.set_dangerous_leniencies(
        lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
    )
    return parser
