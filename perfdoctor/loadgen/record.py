"""A finished exchange as a record on the run's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfdoctor.clock import Clock
from perfdoctor.loadgen.exchange import Exchange
from perfdoctor.loadgen.tokens import count_output
from perfdoctor.model import RequestRecord

if TYPE_CHECKING:
    from perfdoctor.redact import Redactor

ERROR_CHARS = 300
FIRST_TEXT_CHARS = 24  # RequestRecord.first_text
CLOCKS_S = 0.001  # servers round to milliseconds


def record_of(
    exchange: Exchange,
    clock: Clock,
    redactor: Redactor,
    worker: int = 0,
    kind: str | None = None,
) -> RequestRecord:
    """Its error text is short and holds no secret. `kind` is that of an experiment."""
    ask, dial, zero_ns = exchange.ask, exchange.dial, clock.zero_ns
    # Only what differs from a record's defaults: naming every member costs ten times as much.
    known: dict[str, Any] = {
        "id": exchange.id,
        "phase": exchange.phase,
        "due_s": clock.at(exchange.due_ns),
        "status": exchange.status,
        "outcome": exchange.outcome,
        "prompt_hash": ask.digest,
        "reused": dial.reused,
        "redialled": dial.redialled,
        "worker": worker,
    }
    if kind is not None:
        known["kind"] = kind
    for name, stamp_ns in (
        ("sent_s", exchange.sent_ns),
        ("dialled_s", dial.dialled_ns),
        ("tcp_s", dial.tcp_ns),
        ("connected_s", dial.connected_ns),
        ("written_s", dial.written_ns),
        ("headers_s", exchange.headers_ns),
        ("first_event_s", exchange.answer.first_event_ns),
        ("end_s", exchange.end_ns),
    ):
        if stamp_ns is not None:
            known[name] = (stamp_ns - zero_ns) / 1e9
    if exchange.headers_ns is not None:
        known["body_bytes"], known["reads"] = exchange.body_bytes, exchange.reads
    if exchange.outcome != "ok":
        _add_failure(known, exchange, redactor)
    if exchange.tells_tokens or exchange.answer.token_ns:
        _add_answer(known, exchange, clock, redactor)
    return RequestRecord(**known)


def _add_failure(known: dict[str, Any], exchange: Exchange, redactor: Redactor) -> None:
    error = " ".join(redactor.clean(exchange.error or "").split())[:ERROR_CHARS]
    known.update(
        error=error or None,
        retry_after_s=exchange.retry_after_s,
        censored=exchange.censored,
    )


def _add_answer(known: dict[str, Any], exchange: Exchange, clock: Clock, redactor: Redactor) -> None:
    """What a model told."""
    answer = exchange.answer
    at = tuple([clock.at(stamp) for stamp in answer.token_ns])
    prompt_tokens, _, cached_tokens = answer.usage_counts()
    output_tokens, source = None, None
    if exchange.tells_tokens and (at or exchange.outcome == "ok"):
        output_tokens, source = count_output(answer, exchange.streamed)
    prefill_s, decode_s = _server_times(exchange)
    first_text = redactor.clean(answer.first_text) if answer.first_text else None
    known.update(
        first_token_s=at[0] if at else None,
        first_answer_s=None if answer.first_answer_ns is None else clock.at(answer.first_answer_ns),
        last_token_s=at[-1] if at else None,
        token_at_s=at,
        token_counts=tuple(answer.token_counts) if len(answer.token_counts) == len(at) else (),
        first_text=first_text[:FIRST_TEXT_CHARS] if first_text else None,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        token_source=source,
        asked_tokens=exchange.ask.max_tokens or None,
        turn=exchange.ask.turn,
        finish_reason=answer.finish_reason[:ERROR_CHARS] if answer.finish_reason else None,
        server_prefill_s=prefill_s,
        server_decode_s=decode_s,
    )


def _server_times(exchange: Exchange) -> tuple[float | None, float | None]:
    """(prefill, decode) as the server told them; neither where they are longer than the request was."""
    times_s = exchange.answer.server_times()
    if exchange.sent_ns is None or exchange.end_ns is None:
        return None, None
    taken_s = (exchange.end_ns - exchange.sent_ns) / 1e9
    return times_s if sum(filter(None, times_s)) <= taken_s + CLOCKS_S else (None, None)
