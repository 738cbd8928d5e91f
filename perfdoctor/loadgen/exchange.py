"""One request from the instant it was due to the end of its answer; record.py makes its record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import msgspec

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.ending import (
    EVIDENCE_BYTES,
    coding_in,
    evidence,
    judge,
    message_in,
    retry_after,
)
from perfdoctor.loadgen.protocols._protocol import Ask, Protocol, without_refused
from perfdoctor.loadgen.reading import StreamReader, Unreadable
from perfdoctor.loadgen.sse import EventTooLong
from perfdoctor.loadgen.time_limit import TimeLimits
from perfdoctor.loadgen.transports._transport import Dial, Failure, Request, Take, Transport
from perfdoctor.model import PhaseName

WHOLE_BYTES = 16 * 2**20  # of an answer in one piece
STREAM = "text/event-stream"


class Exchange:
    """A request in progress; stamps are raw perf_counter_ns."""

    # A request that goes well changes few of these, and a class's value costs nothing to set.
    sent_ns: int | None = None
    headers_ns: int | None = None
    end_ns: int | None = None
    status: int | None = None
    retry_after_s: float | None = None
    outcome = "ok"
    error: str | None = None
    censored = False
    without_refused: Ask | None = None  # what to ask instead of what the server has refused
    _reader: StreamReader | None = None  # None: the body is an answer in one piece, or evidence
    _whole = False
    _body: list[bytes] | None = None
    _room = 0  # bytes of the body that may still be kept
    _type = ""
    _coding: str | None = None  # of a body that cannot be read as it came
    _bytes = 0
    _reads = 0
    _read_ns = 0  # stamp of the last read

    def __init__(self, id: int, phase: PhaseName, due_ns: int, protocol: Protocol, ask: Ask) -> None:
        self.id, self.phase, self.due_ns, self.ask = id, phase, due_ns, ask
        self._protocol = protocol
        self.answer, self.dial = Answer(), Dial()
        if ask.keep_text:
            self.answer.texts, self.answer.thoughts = [], []

    @property
    def streamed(self) -> bool:
        """The answer came as an event stream."""
        return self._reader is not None

    @property
    def tells_tokens(self) -> bool:
        """Its chunks are tokens: a model answered, and not any HTTP server."""
        return self._protocol.tokens

    @property
    def body_bytes(self) -> int:
        return self._reader.bytes if self._reader else self._bytes

    @property
    def reads(self) -> int:
        """Reads of the connection that brought body."""
        return self._reader.reads if self._reader else self._reads

    async def run(self, transport: Transport, request: Request, limits: TimeLimits) -> None:
        """Send and read to the end. Only a cancellation is raised, after it has been noted as censored."""
        self.sent_ns = time.perf_counter_ns()
        try:
            with limits.start():
                await transport.send(request, self, self.dial)
            self._conclude()
        except asyncio.CancelledError:
            self.censored = True
            self._fail("cancelled", "still open when the run ended")
            raise
        except Failure as failure:
            self._break_off(failure.outcome, failure.why)
        except asyncio.TimeoutError as error:
            self._break_off("timeout", str(error))
        except (Unreadable, EventTooLong) as error:
            self._break_off("bad_stream", str(error))
        finally:
            self.end_ns = time.perf_counter_ns()

    # -- the sink of the transport

    def on_head(self, status: int, headers: Mapping[str, str], at_ns: int) -> Take:
        self.headers_ns, self.status = at_ns, status
        if "retry-after" in headers:
            self.retry_after_s = retry_after(headers)
        good, wants_stream = 200 <= status < 300, self.ask.stream and self._protocol.tokens
        # where a stream was asked for, a response that names no type is given the benefit of the doubt
        named = headers.get("content-type", STREAM if wants_stream else "")
        self._type = named.partition(";")[0].strip().lower()
        self._coding = coding_in(headers)
        if good and self._coding and self._protocol.keep_body:
            raise Failure("bad_stream", f"the answer is compressed ({self._coding}), unasked")
        if good and self._type == STREAM:
            self._reader = StreamReader(self._protocol.read, self.answer)
            return self._reader.feed
        self._whole = good and not wants_stream
        self._room = WHOLE_BYTES if self._whole else EVIDENCE_BYTES
        if self._whole and not self._protocol.keep_body:
            self._room = 0
        return self._keep

    def _keep(self, read: bytes, at_ns: int) -> bool:
        """Take in a piece of a body that is no stream."""
        self._bytes += len(read)
        if at_ns != self._read_ns:  # pieces of one read share its stamp
            self._read_ns = at_ns
            self._reads += 1
        if self.answer.first_event_ns is None:
            self.answer.first_event_ns = at_ns
        if self._room:
            if self._body is None:
                self._body = []
            self._body.append(read[: self._room])
            self._room -= len(self._body[-1])
        return self._full()

    def _full(self) -> bool:
        """Whether more of the body is of no use."""
        if self._whole:
            return self._bytes > WHOLE_BYTES and self._protocol.keep_body
        return self._room == 0

    # -- how it ended

    def _conclude(self) -> None:
        """Judge an answer whose bytes ended as they should."""
        if self._reader:
            if not self.answer.done:
                self._reader.close()
            outcome, why = judge(self.answer, self._protocol.tokens)
            if outcome != "ok":
                self._fail(outcome, why)
        elif self._whole:
            self._read_whole()
        else:
            body = evidence(b"".join(self._body or ()))
            self._refused(f"the body is compressed ({self._coding})" if self._coding else body)

    def _read_whole(self) -> None:
        if self._full():
            self._fail("bad_stream", f"the answer exceeds {WHOLE_BYTES // 2**20} MiB")
            return
        at_ns, body = time.perf_counter_ns(), b"".join(self._body or ())
        try:
            self._protocol.read_whole(self.status or 0, {}, body, at_ns, self.answer)
        except (msgspec.MsgspecError, RecursionError) as error:
            self._fail("bad_stream", f"{error}: {evidence(body)}")
            return
        if self.answer.error is not None:
            self._fail("in_band_error", self.answer.error)

    def _refused(self, body: str) -> None:
        if self.status is not None and 200 <= self.status < 300:
            self._fail("not_streamed", f"{self._type}: {body}")
            return
        self.without_refused = without_refused(self.ask, self.status, body)
        self._fail(f"http_{self.status}", message_in(body))

    def _break_off(self, outcome: str, why: str) -> None:
        """What came too late to matter is no failure of its own: the server had said how it ended."""
        if self.answer.error is not None:
            self._fail("in_band_error", self.answer.error)
        elif not self.answer.complete:
            self._fail(outcome, why)

    def _fail(self, outcome: str, why: str) -> None:
        self.outcome, self.error = outcome, why
