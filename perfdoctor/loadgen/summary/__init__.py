"""What a load test found: counts, rates and latencies of the steady phase. Pure.

Latencies are those of the requests that succeeded; failed ones have a row of their own, and one in which each
of them counts as endless.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from perfdoctor import latency, limits, stats, trust
from perfdoctor.loadgen import arrivals
from perfdoctor.loadgen.summary._columns import delivered, open_requests
from perfdoctor.loadgen.summary._counts import count_requests, count_tokens
from perfdoctor.loadgen.summary._course import course
from perfdoctor.loadgen.summary._notes import ending, impossible, notes
from perfdoctor.loadgen.summary._server import server_view
from perfdoctor.loadgen.summary._window import Window, busy_window, find_window, rates
from perfdoctor.model import (
    Arrivals,
    Load,
    LoadSummary,
    RequestCounts,
    RequestRecord,
    RunFacts,
    Sample,
    SloResult,
    Spread,
    Trust,
)

__all__ = ["believable", "busy_window", "summarise", "with_slo"]

_OF_ANSWER = ("e2e", "e2e_from_schedule")  # what an answer in one piece has too


def summarise(
    facts: RunFacts,
    state: str,
    records: Sequence[RequestRecord],
    samples: Iterable[Sample] = (),
    slo: str | None = None,
) -> LoadSummary:
    """The steady phase of a run; a run without one has no rates and no latencies, and says so with n = 0.

    `slo` replaces the run's own.
    """
    load = facts.scenario.load
    cleaned = believable(facts, records)
    steady = [r for r in cleaned if r.phase == "steady"]
    before = [r for r in cleaned if r.phase == "warmup"]
    answered = latency.ok_records(steady)
    failed = [r for r in steady if r.outcome != "ok" and not r.censored]
    window = find_window(load, steady, before)
    counts = count_requests(load, steady, answered, failed)
    served = [*before, *steady]
    sent = _arrivals(load, steady)
    arrived, flying = delivered(served), open_requests(served)
    tokens = count_tokens(steady, answered, window, arrived)
    streamed = [r for r in answered if r.token_at_s]
    spreads: dict[str, Any] = {
        name: _spread(answered if name in _OF_ANSWER else streamed, of)
        for name, of in latency.OF_REQUEST.items()
    }
    inter_token = [value for r in streamed for value in latency.inter_token(r)]
    summary = LoadSummary(
        run=facts.run,
        state=state,
        requests=counts,
        trust=_trust(facts, counts, spreads, sent),
        rates=rates(load, served, window, arrived, flying),
        **spreads,
        itl=stats.spread(inter_token) if inter_token else None,
        gap=stats.spread([gap for r in streamed for gap in latency.gaps(r)]),
        e2e_with_failures=_with_failures(spreads["e2e"], answered, len(failed)),
        error_latency=stats.spread(latency.present(map(_duration, failed))),
        stages=_stages(answered),
        arrivals=sent,
        tokens=tokens,
        server=server_view(tuple(samples), window, cleaned),
        course=course(steady, arrived, flying),
        stopped=facts.stopped,
        notes=(
            *ending(facts, state),
            *impossible(len(records) - len(cleaned)),
            *notes(load, steady, answered, counts, tokens),
        ),
        errors=_first_messages(failed),
    )
    text = slo or load.slo
    return with_slo(summary, text, steady, window) if text else summary


def believable(facts: RunFacts, records: Sequence[RequestRecord]) -> list[RequestRecord]:
    """The records that numbers are made of: without impossible ones, and without chunks that are no token."""
    latest_s = _latest_s(facts)
    return [r for r in latency.without_prompt_tail(records) if latency.is_possible(r, latest_s)]


def _latest_s(facts: RunFacts) -> float:
    """After which no request can have ended; endless while the steady phase is not over."""
    if not any(phase.name == "steady" for phase in facts.phases):
        return math.inf
    load = facts.scenario.load
    return max(phase.end_s for phase in facts.phases) + load.drain_s + load.timeout_s


def with_slo(
    summary: LoadSummary, text: str, steady: Sequence[RequestRecord], window: Window | None
) -> LoadSummary:
    """The summary judged by an SLO. Goodput counts the good requests that ended in the window."""
    import msgspec

    wanted = limits.parse(text)
    ended = [r for r in steady if not r.censored]
    asked = limits.can_be_asked(ended, wanted)
    good = [r for r in ended if limits.is_good(r, wanted)]
    inside = [r for r in good if window and r.end_s is not None and window[0] < r.end_s <= window[1]]
    width_s = window[1] - window[0] if window else 0.0
    result = SloResult(
        text=text,
        goodput_per_s=len(inside) / width_s if asked and width_s > 0 else None,
        good_share=len(good) / len(ended) if asked and ended else None,
    )
    summary = msgspec.structs.replace(summary, slo=result)
    terms = tuple(limits.test(limit, summary) for limit in wanted)
    met = None if any(t.met is None for t in terms) else all(t.met for t in terms)
    if any(t.met is False for t in terms):
        met = False
    return msgspec.structs.replace(summary, slo=msgspec.structs.replace(result, terms=terms, met=met))


def _spread(records: Sequence[RequestRecord], of: Callable[[RequestRecord], float | None]) -> Spread:
    return stats.spread(latency.present(map(of, records)))


def _trust(
    facts: RunFacts, counts: RequestCounts, spreads: Mapping[str, Spread], sent: Arrivals | None
) -> Trust:
    if not counts.total:
        return Trust(status="invalid", reasons=("no request of the load itself was recorded",))
    measured = trust.Measured(
        e2e_p50_s=spreads["e2e"].p50,
        ttft_p50_s=spreads["ttft"].p50,
        total=counts.total,
        failed=counts.failed,
        cut_off=counts.censored - counts.not_sent,
    )
    return trust.weigh(facts.client, measured, sent)


def _with_failures(e2e: Spread, answered: Sequence[RequestRecord], failed: int) -> Spread:
    """Percentiles that fall among the failures are endless, so None; a mean there is none."""
    if not failed:
        return e2e
    import msgspec

    found = stats.spread([*latency.present(map(latency.e2e, answered)), *[math.inf] * failed])

    def finite(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    changes = {
        name: finite(getattr(found, name)) for name in ("mean", "min", "p50", "p90", "p95", "p99", "max")
    }
    between = {
        name: pair for name, pair in found.intervals.items() if all(math.isfinite(edge) for edge in pair)
    }
    return msgspec.structs.replace(found, intervals=between, **changes)


def _stages(answered: Sequence[RequestRecord]) -> dict[str, Spread]:
    """Only those that some request went through."""
    found = {name: _spread(answered, of) for name, of in latency.OF_STAGE.items()}
    return {name: spread for name, spread in found.items() if spread.n}


def _first_messages(failed: Sequence[RequestRecord]) -> dict[str, str]:
    """Of each class, by when it ended."""
    latest_first = sorted(failed, key=lambda r: (r.end_s or 0.0, r.id), reverse=True)
    return {r.outcome: r.error or "" for r in latest_first}


def _arrivals(load: Load, steady: Sequence[RequestRecord]) -> Arrivals | None:
    """Later turns of conversations are due when the one before was answered, and not by the schedule."""
    scheduled = [r for r in steady if (r.turn or 1) == 1]
    if load.arrival == "closed" or not scheduled:
        return None
    return arrivals.check(load.arrival, [r.due_s for r in scheduled], [r.sent_s for r in scheduled])


def _duration(record: RequestRecord) -> float | None:
    if record.sent_s is None or record.end_s is None:
        return None
    return record.end_s - record.sent_s
