"""What a load test found: counts, rates and latencies of the steady phase. Pure.

Rates are taken inside the busy window, from when every user had sent to when the first had nothing left to
send: outside it the load was not the one that was asked for. A token counts where it arrived, a request with
the share of its tokens that arrived inside: the time it waited in a queue is nothing that was served.
Latencies are those of the requests that succeeded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from perfdoctor import latency, stats, trust, units
from perfdoctor.model import (
    LoadSummary,
    Rates,
    RequestCounts,
    RequestRecord,
    RunFacts,
    Spread,
    TokenCounts,
)

PEAK_S = 1.0
# Usage counts the end mark and hidden tags too, a few per answer: only well above one are tokens merged.
SEVERAL_PER_CHUNK = 1.2
TOGETHER_S = 1e-5  # chunks of one read share its stamp
TOGETHER_SHARE = 0.2  # of all gaps; a guess: an unbatched stream shows none
CACHED_SHARE = 0.1  # of the prompt tokens; a chat template's fixed start is less of any real prompt

Window = tuple[float, float]


def summarise(facts: RunFacts, state: str, records: Sequence[RequestRecord]) -> LoadSummary:
    """The steady phase of a run; a run without one has no rates and no latencies, and says so with n = 0."""
    steady = [r for r in latency.without_prompt_tail(records) if r.phase == "steady"]
    answered = latency.ok_records(steady)
    failed = [r for r in steady if r.outcome != "ok" and not r.censored]
    window = busy_window(steady, facts.scenario.load.concurrency)
    tokens = count_tokens(steady, window)

    def spread(of: Callable[[RequestRecord], float | None]) -> Spread:
        return stats.spread(latency.present(map(of, answered)))

    return LoadSummary(
        run=facts.run,
        state=state,
        requests=count_requests(steady, answered, failed),
        trust=trust.judge(facts.client, steady),
        rates=rates(steady, window, tokens),
        ttft=spread(latency.ttft),
        ttfa=spread(latency.ttfa),
        tpot=spread(latency.tpot),
        gap=stats.spread([gap for r in answered for gap in latency.gaps(r)]),
        e2e=spread(latency.e2e),
        e2e_from_schedule=spread(latency.e2e_from_schedule),
        error_latency=stats.spread(latency.present(map(_duration, failed))),
        tokens=tokens,
        notes=(*ending(facts, state), *notes(steady, answered, tokens)),
        errors={r.outcome: r.error or "" for r in reversed(failed)},
    )


def count_requests(
    steady: Sequence[RequestRecord], answered: Sequence[RequestRecord], failed: Sequence[RequestRecord]
) -> RequestCounts:
    return RequestCounts(
        total=len(steady),
        ok=len(answered),
        failed=dict(Counter(r.outcome for r in failed)),
        censored=sum(r.censored for r in steady),
        empty_answers=sum(not r.token_at_s for r in answered),
        redialled=sum(r.redialled for r in steady),
        finish_reasons=dict(Counter(r.finish_reason for r in answered if r.finish_reason)),
    )


def busy_window(records: Sequence[RequestRecord], users: int) -> Window | None:
    """(start, end) of the time in which all users had a request open.

    With fewer requests than users, or when the first answer came before the last user had sent, there is no
    such time, and the window is the whole span instead. None without requests.
    """
    sent = sorted(r.sent_s for r in records if r.sent_s is not None)
    ended = sorted(r.end_s for r in records if r.end_s is not None)
    if not sent or not ended:
        return None
    whole = (sent[0], ended[-1])
    if min(len(sent), len(ended)) < users:
        return whole
    start, end = sent[users - 1], ended[-users]
    return (start, end) if end > start else whole


def rates(records: Sequence[RequestRecord], window: Window | None, tokens: TokenCounts) -> Rates:
    if window is None or window[1] <= window[0]:
        return Rates()
    width_s = window[1] - window[0]
    return Rates(
        requests_per_s=sum(_part_inside(r, window) for r in records if r.outcome == "ok") / width_s,
        output_tokens_per_s=None if tokens.in_window is None else tokens.in_window / width_s,
        peak_output_tokens_per_s=_peak(records, window),
        in_flight_mean=sum(_overlap_s(r, window) for r in records) / width_s,
    )


def count_tokens(records: Sequence[RequestRecord], window: Window | None) -> TokenCounts:
    """Tokens of all requests, failed ones too: they were delivered. None where nothing was counted."""
    counted = [r for r in records if r.output_tokens is not None]
    sources = {r.token_source for r in counted if r.token_source}
    told = [r for r in counted if r.token_source == "usage" and r.token_at_s]
    inside = [
        weight for r in counted for at, weight in _arrivals(r) if window and window[0] < at <= window[1]
    ]
    return TokenCounts(
        prompt=_sum([r.prompt_tokens for r in records]),
        output=_sum([r.output_tokens for r in counted]),
        in_window=round(sum(inside)) if counted and window else None,
        per_chunk=_ratio(sum(r.output_tokens or 0 for r in told), sum(len(r.token_at_s) for r in told)),
        source="mixed" if len(sources) > 1 else next(iter(sources), None),
    )


def ending(facts: RunFacts, state: str) -> tuple[str, ...]:
    """Why a run is shorter than asked for; nothing for a complete one."""
    if state == "failed":
        return (f"the run failed: {facts.error or 'its log.txt says why'}",)
    if state == "interrupted":
        return ("the run was interrupted: the numbers cover what was recorded before",)
    return ("the run is still going on",) if state == "running" else ()


def notes(
    records: Sequence[RequestRecord], answered: Sequence[RequestRecord], tokens: TokenCounts
) -> list[str]:
    """What a reader must know to read the numbers right."""
    found = []
    tails = sum(r.head_chunks for r in records)
    if tails:
        found.append(f"{tails} chunks with the prompt's own tail were left out: they came before any token")
    if tokens.source in ("chunks", "mixed"):
        which = "any" if tokens.source == "chunks" else "every"
        found.append(f"the server did not tell token counts with {which} answer: chunks were counted instead")
    if tokens.per_chunk and tokens.per_chunk > SEVERAL_PER_CHUNK:
        found.append(
            f"tokens arrive {tokens.per_chunk:.1f} per chunk on average: gaps are not inter-token latencies, "
            "TPOT is"
        )
    gaps = [gap for r in answered for gap in latency.gaps(r)]
    together = _ratio(sum(gap < TOGETHER_S for gap in gaps), len(gaps)) or 0.0
    if together >= TOGETHER_SHARE:
        found.append(
            f"{units.share(together)} of the chunks arrived together with the one before: the server, a "
            "proxy or a busy client batches the stream: trust TPOT, not gaps"
        )
    cached, prompts = _sum([r.cached_tokens for r in answered]), _sum([r.prompt_tokens for r in answered])
    if cached and prompts and cached / prompts >= CACHED_SHARE:
        found.append(f"{units.share(cached / prompts)} of the prompt tokens came from a prefix cache")
    censored = sum(r.censored for r in records)
    if censored:
        found.append(
            f"{censored} requests were still open at the end: their tokens count, their times do not"
        )
    return found


def _duration(record: RequestRecord) -> float | None:
    if record.sent_s is None or record.end_s is None:
        return None
    return record.end_s - record.sent_s


def _part_inside(record: RequestRecord, window: Window) -> float:
    """Share of a request that was served in the window; one without tokens was served when it ended."""
    stamps = record.token_at_s or ((record.end_s,) if record.end_s is not None else ())
    return _ratio(sum(window[0] < at <= window[1] for at in stamps), len(stamps)) or 0.0


def _overlap_s(record: RequestRecord, window: Window) -> float:
    if record.sent_s is None or record.end_s is None:
        return 0.0
    return max(0.0, min(record.end_s, window[1]) - max(record.sent_s, window[0]))


def _arrivals(record: RequestRecord) -> list[tuple[float, float]]:
    """(instant, tokens) of each chunk; the request's tokens are spread evenly over its chunks."""
    chunks = len(record.token_at_s)
    return [(at, (record.output_tokens or 0) / chunks) for at in record.token_at_s]


def _peak(records: Sequence[RequestRecord], window: Window) -> float | None:
    """Most tokens in any one second of the window; None in a shorter one."""
    if window[1] - window[0] < PEAK_S:
        return None
    arrivals = sorted(pair for r in records for pair in _arrivals(r) if window[0] < pair[0] <= window[1])
    best = inside = 0.0
    oldest = 0
    for at, weight in arrivals:
        inside += weight
        while arrivals[oldest][0] <= at - PEAK_S:
            inside -= arrivals[oldest][1]
            oldest += 1
        best = max(best, inside)
    return round(best / PEAK_S, 6) if arrivals else None  # the sum drifts in its last digits


def _sum(values: Sequence[int | None]) -> int | None:
    """Of the known ones; None when none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
