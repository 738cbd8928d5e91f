"""The definitions of every latency, as pure functions of a request's instants.

One place for both the load test and the diagnosis, so that a word means one thing. Each returns seconds, or
None where the quantity does not exist for that request (never 0).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from perfdoctor.model import RequestRecord

DEFINITIONS = {
    "ttft": "time to first token: from the request sent to the first chunk with generated payload "
    "(reasoning counts; role-only chunks and an echo of the prompt's tail do not)",
    "ttfa": "time to first answer: from sent to the first chunk that is no reasoning",
    "tpot": "time per output token after the first chunk: (last token - first token) / (output tokens - "
    "those of the first chunk, one where that is not known)",
    "itl": "inter-token latency: the pause before a chunk, divided among its tokens; only where the tokens "
    "of each chunk are known",
    "gap": "pause between two chunks with payload; a chunk may hold several tokens",
    "e2e": "end to end: from sent to the last token, as a reader of the answer sees it; of an answer in one "
    "piece, to its end",
    "ttft_from_schedule": "time to first token counted from when the schedule wanted the request sent",
    "ttfa_from_schedule": "time to first answer counted from then",
    "e2e_from_schedule": "end to end counted from when the schedule wanted the request sent",
    "e2e_with_failures": "end to end, each failed request counted as endless",
    "error_latency": "from sent to the failure, for failed requests",
    "user_tokens_per_s": "tokens a second that one user sees after the first chunk: 1 / tpot",
}
ROUNDING_S = 1e-6  # by which one instant may come before another that it is
STAGES = {
    "pool_wait": "from sent to the dial, or on a kept connection to the bytes being written",
    "connect": "from the dial to a TCP connection",
    "tls": "the TLS handshake",
    "headers": "from the request written to the head of the answer",
    "first_byte": "from the head to the first of the body",
    "transfer": "from the first of the body to its end",
}


def _span(start_s: float | None, end_s: float | None) -> float | None:
    return None if start_s is None or end_s is None else end_s - start_s


def ttft(record: RequestRecord) -> float | None:
    return _span(record.sent_s, record.first_token_s)


def ttfa(record: RequestRecord) -> float | None:
    return _span(record.sent_s, record.first_answer_s)


def answered_s(record: RequestRecord) -> float | None:
    """When the answer was there: its last token, or the end of one that came in one piece."""
    if record.last_token_s is None and not record.token_at_s and record.outcome == "ok":
        return record.end_s
    return record.last_token_s


def e2e(record: RequestRecord) -> float | None:
    return _span(record.sent_s, answered_s(record))


def ttft_from_schedule(record: RequestRecord) -> float | None:
    return _span(record.due_s, record.first_token_s)


def ttfa_from_schedule(record: RequestRecord) -> float | None:
    return _span(record.due_s, record.first_answer_s)


def e2e_from_schedule(record: RequestRecord) -> float | None:
    return _span(record.due_s, answered_s(record))


def tpot(record: RequestRecord) -> float | None:
    """None where nothing came after the first chunk: one chunk has no pace."""
    span = _span(record.first_token_s, record.last_token_s)
    if span is None or record.output_tokens is None or len(record.token_at_s) < 2:
        return None
    later = record.output_tokens - (record.token_counts[0] if record.token_counts else 1)
    return span / later if later > 0 else None


def user_tokens_per_s(record: RequestRecord) -> float | None:
    pace_s = tpot(record)
    return 1 / pace_s if pace_s else None


# The quantities of which a request has one value or none, by their names in DEFINITIONS.
OF_REQUEST: dict[str, Callable[[RequestRecord], float | None]] = {
    "ttft": ttft,
    "ttfa": ttfa,
    "tpot": tpot,
    "e2e": e2e,
    "ttft_from_schedule": ttft_from_schedule,
    "ttfa_from_schedule": ttfa_from_schedule,
    "e2e_from_schedule": e2e_from_schedule,
    "user_tokens_per_s": user_tokens_per_s,
}


def gaps(record: RequestRecord) -> tuple[float, ...]:
    if len(record.token_at_s) < 2:
        return ()
    return tuple(b - a for a, b in itertools.pairwise(record.token_at_s))


def token_counts(record: RequestRecord) -> tuple[int, ...]:
    """Tokens of each chunk; empty where they are not known.

    As the server told them, or one each where an answer that was cut at its limit, so that no end mark is
    among its tokens, came in as many chunks as tokens.
    """
    if record.token_counts:
        return record.token_counts
    exact = record.token_source == "usage" and record.finish_reason == "length"
    if exact and record.output_tokens == len(record.token_at_s):
        return (1,) * len(record.token_at_s)
    return ()


def inter_token(record: RequestRecord) -> list[float]:
    """One value per token after the first chunk; of those that came together, each its part of the pause."""
    found: list[float] = []
    counts = token_counts(record) if len(record.token_at_s) > 1 else ()
    for gap, tokens in zip(gaps(record), counts[1:], strict=False):
        if tokens > 0:
            found += [gap / tokens] * tokens
    return found


def _pool_wait(record: RequestRecord) -> float | None:
    return _span(record.sent_s, record.written_s if record.dialled_s is None else record.dialled_s)


def _handshake(record: RequestRecord) -> float | None:
    """Without TLS a connection stands with its TCP."""
    return None if record.connected_s == record.tcp_s else _span(record.tcp_s, record.connected_s)


# The way of a request before and around its answer, by the names of STAGES.
OF_STAGE: dict[str, Callable[[RequestRecord], float | None]] = {
    "pool_wait": _pool_wait,
    "connect": lambda r: _span(r.dialled_s, r.tcp_s),
    "tls": _handshake,
    "headers": lambda r: _span(r.written_s, r.headers_s),
    "first_byte": lambda r: _span(r.headers_s, r.first_event_s),
    "transfer": lambda r: _span(r.first_event_s, r.end_s),
}


def stages(record: RequestRecord) -> dict[str, float | None]:
    return {name: of(record) for name, of in OF_STAGE.items()}


def ok_records(records: Iterable[RequestRecord]) -> tuple[RequestRecord, ...]:
    return tuple(r for r in records if r.outcome == "ok" and not r.censored)


def is_possible(record: RequestRecord, latest_s: float = math.inf) -> bool:
    """Whether its instants are in the order that a request takes, up to `latest_s`, and no count is below 0.

    A damaged record would give negative or endless latencies. When it was written is no part: a server may
    answer before it has read everything.
    """
    before = (record.sent_s, record.headers_s, record.first_event_s, record.first_token_s)
    instants = (0.0, *before, *record.token_at_s, record.last_token_s, record.end_s, latest_s)
    known = [at for at in instants if at is not None]
    ordered = known == sorted(known) or all(b - a >= -ROUNDING_S for a, b in itertools.pairwise(known))
    return ordered and (record.output_tokens or 0) >= 0 and (record.prompt_tokens or 0) >= 0


def present(values: Iterable[float | None]) -> list[float]:
    return [v for v in values if v is not None]


# ------------------------------------------------------------------------------ the prompt's own tail


def without_prompt_tail(records: Sequence[RequestRecord]) -> tuple[RequestRecord, ...]:
    """Leave out a leading chunk that the server sent before it generated anything.

    Some servers stream the end of the prompt template (`<think>\\n`) at once, so that a naive TTFT is the
    time to an echo. No name is checked: most answers begin with the same chunk, and there is one chunk more
    than tokens. Only some answers can show that, because a token may pass without a chunk: the end mark of an
    answer that stopped by itself, and the marks between reasoning and answer. So those that ran to their
    limit decide (the driver's first requests, of two tokens, are made for it), the ones within reasoning or
    answer before those with a mark. Without any, as many chunks as tokens is already one too many, but then
    the first gap must be out of line too.
    """
    texts = Counter(r.first_text for r in records if r.first_text)
    most = texts.total() / 2
    echo = {
        text
        for text, times in texts.items()
        if times > most and _is_echo([r for r in records if r.first_text == text])
    }
    return tuple(_drop_head(r) if r.first_text in echo else r for r in records)


def _is_echo(group: Sequence[RequestRecord]) -> bool:
    counted = [r for r in group if r.token_source == "usage" and r.output_tokens and not r.head_chunks]
    capped = [r for r in counted if _is_capped(r)]
    plain = [r for r in capped if not _marks(r)]
    if capped:
        decisive = plain or capped
        return sum(_chunk_surplus(r) + _marks(r) > 0 for r in decisive) > len(decisive) / 2
    others = [r for r in counted if len(r.token_at_s) >= 4]
    surplus = [r for r in others if _chunk_surplus(r) >= 0 and _first_gap_out_of_line(r)]
    return len(others) >= 3 and len(surplus) > len(others) / 2


def _is_capped(record: RequestRecord) -> bool:
    """It ran to its limit. In the Responses API some servers call such an answer completed."""
    if record.finish_reason == "completed":
        return record.output_tokens == record.asked_tokens
    return record.finish_reason == "length"


def _marks(record: RequestRecord) -> int:
    """Tokens at least that parted reasoning from answer; 0 where all was one of the two."""
    return int(record.first_answer_s not in (None, record.first_token_s))


def _chunk_surplus(record: RequestRecord) -> int:
    return len(record.token_at_s) - (record.output_tokens or 0)


def _first_gap_out_of_line(record: RequestRecord) -> bool:
    first, *rest = gaps(record)
    return first > 5 * statistics.median(rest)


def _drop_head(record: RequestRecord) -> RequestRecord:
    if len(record.token_at_s) < 2 or record.head_chunks:
        return record
    first, second, *_ = record.token_at_s
    answer = record.first_answer_s
    return msgspec.structs.replace(
        record,
        token_at_s=record.token_at_s[1:],
        token_counts=record.token_counts[1:],
        first_token_s=second,
        first_answer_s=second if answer == first else answer,
        head_chunks=1,
    )
