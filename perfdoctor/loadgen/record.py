"""A finished exchange as a record on the run's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfdoctor.clock import Clock
from perfdoctor.loadgen.exchange import Exchange
from perfdoctor.loadgen.tokens import Counter, count_output
from perfdoctor.model import RequestRecord

if TYPE_CHECKING:
    from perfdoctor.redact import Redactor

ERROR_CHARS = 300
FIRST_TEXT_CHARS = 24  # RequestRecord.first_text


def record_of(
    exchange: Exchange,
    clock: Clock,
    redactor: Redactor,
    counter: Counter | None = None,
    worker: int = 0,
) -> RequestRecord:
    """Its error text is short and holds no secret. `counter` is asked where the server tells no tokens."""
    answer, dial = exchange.answer, exchange.dial
    at = tuple([clock.at(stamp) for stamp in answer.token_ns])
    prompt_tokens, _, cached_tokens = answer.usage_counts()
    output_tokens, source = None, None
    if exchange.tells_tokens and (at or exchange.outcome == "ok"):
        output_tokens, source = count_output(answer, counter, exchange.streamed)
    prefill_s, decode_s = answer.server_times()
    first_text = redactor.clean(answer.first_text) if answer.first_text else None
    error = " ".join(redactor.clean(exchange.error).split()) if exchange.error else None
    return RequestRecord(
        id=exchange.id,
        phase=exchange.phase,
        due_s=clock.at(exchange.due_ns),
        sent_s=_at(clock, exchange.sent_ns),
        dialled_s=_at(clock, dial.dialled_ns),
        tcp_s=_at(clock, dial.tcp_ns),
        connected_s=_at(clock, dial.connected_ns),
        written_s=_at(clock, dial.written_ns),
        headers_s=_at(clock, exchange.headers_ns),
        first_event_s=_at(clock, answer.first_event_ns),
        first_token_s=at[0] if at else None,
        first_answer_s=_at(clock, answer.first_answer_ns),
        last_token_s=at[-1] if at else None,
        end_s=_at(clock, exchange.end_ns),
        token_at_s=at,
        token_counts=tuple(answer.token_counts) if len(answer.token_counts) == len(at) else (),
        first_text=first_text[:FIRST_TEXT_CHARS] if first_text else None,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        token_source=source,
        asked_tokens=exchange.ask.max_tokens or None,
        prompt_hash=exchange.ask.digest,
        turn=exchange.ask.turn,
        finish_reason=answer.finish_reason[:ERROR_CHARS] if answer.finish_reason else None,
        status=exchange.status,
        outcome=exchange.outcome,
        error=error[:ERROR_CHARS] if error else None,
        retry_after_s=exchange.retry_after_s,
        body_bytes=exchange.body_bytes if exchange.headers_ns is not None else None,
        reads=exchange.reads if exchange.headers_ns is not None else None,
        server_prefill_s=prefill_s,
        server_decode_s=decode_s,
        reused=dial.reused,
        redialled=dial.redialled,
        censored=exchange.censored,
        worker=worker,
    )


def _at(clock: Clock, stamp_ns: int | None) -> float | None:
    return None if stamp_ns is None else clock.at(stamp_ns)
