"""One request from the instant it was due to its record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from perfdoctor.clock import Clock
from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols._protocol import Ask, Protocol, without_refused
from perfdoctor.loadgen.reading import StreamReader
from perfdoctor.loadgen.sse import EventTooLong
from perfdoctor.loadgen.time_limit import TimeLimit
from perfdoctor.loadgen.transports._transport import Dial, Failure, Request, Transport
from perfdoctor.model import PhaseName, RequestRecord

if TYPE_CHECKING:
    from perfdoctor.redact import Redactor

ERROR_CHARS = 300
FIRST_TEXT_CHARS = 24  # RequestRecord.first_text
ERROR_BODY_BYTES = 4096

# what reading an answer may raise; RecursionError: JSON of a thousand nested lists
_UNREADABLE = (msgspec.MsgspecError, EventTooLong, RecursionError)


class Exchange:
    """A request in progress; stamps are raw perf_counter_ns."""

    __slots__ = (
        "_evidence",
        "_protocol",
        "_reader",
        "_type",
        "answer",
        "ask",
        "censored",
        "dial",
        "due_ns",
        "end_ns",
        "error",
        "headers_ns",
        "id",
        "outcome",
        "phase",
        "sent_ns",
        "status",
        "without_refused",
    )  # fmt: skip

    def __init__(self, id: int, phase: PhaseName, due_ns: int, protocol: Protocol, ask: Ask) -> None:
        self.id, self.phase, self.due_ns, self.ask = id, phase, due_ns, ask
        self._protocol = protocol
        self._reader: StreamReader | None = None  # None: the body is evidence, not a stream
        self._evidence = b""
        self._type = ""
        self.sent_ns: int | None = None
        self.headers_ns: int | None = None
        self.end_ns: int | None = None
        self.status: int | None = None
        self.outcome = "ok"
        self.error: str | None = None
        self.censored = False
        self.without_refused: Ask | None = None  # what to ask instead of what the server has refused
        self.answer = Answer()
        self.dial = Dial()

    async def run(self, transport: Transport, request: Request, limit_s: float) -> None:
        """Send and read to the end. Only a cancellation is raised, after it has been noted as censored."""
        self.sent_ns = time.perf_counter_ns()
        try:
            with TimeLimit(limit_s):
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
        except _UNREADABLE as error:
            self._break_off("bad_stream", str(error) or type(error).__name__)
        finally:
            self.end_ns = time.perf_counter_ns()

    def on_head(self, status: int, headers: Mapping[str, str], at_ns: int) -> None:
        self.headers_ns, self.status = at_ns, status
        # a response that names no type at all is given the benefit of the doubt
        self._type = headers.get("content-type", "text/event-stream").partition(";")[0].strip().lower()
        if status == 200 and self._type == "text/event-stream":
            self._reader = StreamReader(self._protocol.read, self.answer)

    def on_body(self, read: bytes, at_ns: int) -> bool:
        if self._reader:
            return self._reader.feed(read, at_ns)
        self._evidence += read[: ERROR_BODY_BYTES - len(self._evidence)]
        return len(self._evidence) >= ERROR_BODY_BYTES

    def _conclude(self) -> None:
        """Judge an answer whose bytes ended as they should."""
        if self._reader:
            if not self.answer.done:
                self._reader.close()
            outcome, why = judge(self.answer)
            if outcome != "ok":
                self._fail(outcome, why)
            return
        body = self._evidence.decode("utf-8", "replace")
        if self.status == 200:
            self._fail("not_streamed", f"{self._type}: {body}")
        else:
            self.without_refused = without_refused(self.ask, self.status, body)
            self._fail(f"http_{self.status}", _message_in(body))

    def _break_off(self, outcome: str, why: str) -> None:
        """What came too late to matter is no failure: the server had said that it was finished."""
        if not self.answer.complete or self.answer.error:
            self._fail(outcome, why)

    def _fail(self, outcome: str, why: str) -> None:
        self.outcome, self.error = outcome, why

    def record(self, clock: Clock, redactor: Redactor) -> RequestRecord:
        """The finished request on the run's clock; its error text is short and holds no secret."""
        answer, dial = self.answer, self.dial
        at = tuple([clock.at(stamp) for stamp in answer.token_ns])
        prompt_tokens, output_tokens, cached_tokens = answer.usage_counts()
        source: Literal["usage", "chunks"] | None = None if output_tokens is None else "usage"
        if output_tokens is None and (at or self.outcome == "ok"):
            output_tokens, source = len(at), "chunks"
        prefill_s, decode_s = answer.server_times()
        error = " ".join(redactor.clean(self.error).split())[:ERROR_CHARS] if self.error else None
        return RequestRecord(
            id=self.id,
            phase=self.phase,
            due_s=clock.at(self.due_ns),
            sent_s=_at(clock, self.sent_ns),
            dialled_s=_at(clock, dial.dialled_ns),
            tcp_s=_at(clock, dial.tcp_ns),
            connected_s=_at(clock, dial.connected_ns),
            written_s=_at(clock, dial.written_ns),
            headers_s=_at(clock, self.headers_ns),
            first_event_s=_at(clock, answer.first_event_ns),
            first_token_s=at[0] if at else None,
            first_answer_s=_at(clock, answer.first_answer_ns),
            last_token_s=at[-1] if at else None,
            end_s=_at(clock, self.end_ns),
            token_at_s=at,
            first_text=redactor.clean(answer.first_text)[:FIRST_TEXT_CHARS] if answer.first_text else None,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            cached_tokens=cached_tokens,
            token_source=source,
            asked_tokens=self.ask.max_tokens,
            finish_reason=answer.finish_reason[:ERROR_CHARS] if answer.finish_reason else None,
            status=self.status,
            outcome=self.outcome,
            error=error,
            server_prefill_s=prefill_s,
            server_decode_s=decode_s,
            reused=dial.reused,
            redialled=dial.redialled,
            censored=self.censored,
        )


def judge(answer: Answer) -> tuple[str, str]:
    """(outcome, why) of a stream that ended without a network failure.

    Finished with no token is an answer; neither token nor finish_reason is none, even after a bare [DONE].
    """
    if answer.error is not None:
        return "in_band_error", answer.error
    if not answer.token_ns and answer.finish_reason is None:
        return "empty", "the stream ended with neither a token nor a finish_reason"
    if not answer.complete:
        return "truncated", "the stream ended with neither finish_reason nor [DONE]"
    return "ok", ""


def _message_in(body: str) -> str:
    """The human part of an error body in the shapes servers use; else the body itself."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return body
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and value.get(key):
            value = value[key]
    return value if isinstance(value, str) else body


def _at(clock: Clock, stamp_ns: int | None) -> float | None:
    return None if stamp_ns is None else clock.at(stamp_ns)
