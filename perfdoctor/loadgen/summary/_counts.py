"""Requests and tokens, counted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from perfdoctor.loadgen.summary._columns import Delivered
from perfdoctor.loadgen.summary._window import Window
from perfdoctor.model import Load, RequestCounts, RequestRecord, TokenCounts

LATE_S = 0.010  # guess: sent this much after its instant is late; timers and pacing stay below


def count_requests(
    load: Load,
    steady: Sequence[RequestRecord],
    answered: Sequence[RequestRecord],
    failed: Sequence[RequestRecord],
) -> RequestCounts:
    hashes = [r.prompt_hash for r in steady if r.prompt_hash]
    opens = load.arrival != "closed"
    return RequestCounts(
        total=len(steady),
        ok=len(answered),
        failed=dict(Counter(r.outcome for r in failed)),
        censored=sum(r.censored for r in steady),
        not_sent=sum(r.sent_s is None for r in steady),
        late=sum(r.sent_s is not None and r.sent_s - r.due_s > LATE_S for r in steady) if opens else 0,
        empty_answers=sum(_is_empty(r) for r in answered),
        redialled=sum(r.redialled for r in steady),
        finish_reasons=dict(Counter(r.finish_reason for r in answered if r.finish_reason)),
        distinct_prompts_share=len(set(hashes)) / len(hashes) if hashes else None,
    )


def _is_empty(record: RequestRecord) -> bool:
    """A stream that was finished without a token; an answer in one piece is one by its own count."""
    return not record.token_at_s and record.output_tokens == 0


def count_tokens(
    records: Sequence[RequestRecord],
    answered: Sequence[RequestRecord],
    window: Window | None,
    arrived: Delivered,
) -> TokenCounts:
    """Tokens of all requests, failed ones too: they were delivered. None where nothing was counted."""
    counted = [r for r in records if r.output_tokens is not None]
    sources = {r.token_source for r in counted if r.token_source}
    told = [r for r in counted if r.token_source == "usage" and r.token_at_s]
    asked = [r for r in answered if r.asked_tokens and r.output_tokens is not None]
    chunks, tokens = sum(len(r.token_at_s) for r in told), sum(r.output_tokens or 0 for r in told)
    return TokenCounts(
        prompt=total([r.prompt_tokens for r in records]),
        output=total([r.output_tokens for r in counted]),
        asked=total([r.asked_tokens for r in asked]),
        delivered=total([r.output_tokens for r in asked]),
        cached=total([r.cached_tokens for r in records]),
        in_window=round(arrived.within(*window)) if window and arrived.counted else None,
        per_chunk=tokens / chunks if chunks else None,
        source="mixed" if len(sources) > 1 else next(iter(sources), None),
    )


def total(values: Sequence[int | None]) -> int | None:
    """Of the known ones; None when none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
