"""Limits on the numbers of a load test: `ttft_p95<500ms,error_rate<1%,requests_per_s>10,trust=valid`. Pure.

One grammar for what must hold (`--slo`) and for what must not be (`--fail-on`). Names are those of the JSON.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from perfdoctor import latency, units
from perfdoctor.errors import UsageError
from perfdoctor.model import LoadSummary, RequestRecord, SloTerm, Spread

EXAMPLE = "ttft_p95<500ms,tpot_p95<50ms"
Comparison = Literal["<", "<=", ">", ">=", "="]
_TERM = re.compile(r"([a-z][a-z0-9_]*)\s*(<=|>=|<|>|=)\s*(\S(?:.*\S)?)")
_STATISTICS = ("mean", "min", "p50", "p90", "p95", "p99", "max")
_DURATIONS = (
    "ttft", "ttfa", "tpot", "itl", "gap", "e2e", "ttft_from_schedule", "ttfa_from_schedule",
    "e2e_from_schedule", "e2e_with_failures", "error_latency",
)  # fmt: skip
_RATES = (
    "requests_per_s", "output_tokens_per_s", "input_tokens_per_s", "peak_output_tokens_per_s", "sent_per_s",
    "in_flight_mean", "in_flight_max",
)  # fmt: skip
_PER_REQUEST: dict[str, Callable[[RequestRecord], float | None]] = {
    "ttft": latency.ttft,
    "ttfa": latency.ttfa,
    "tpot": latency.tpot,
    "e2e": latency.e2e,
    "e2e_from_schedule": latency.e2e_from_schedule,
}


@dataclass(frozen=True, slots=True)
class Limit:
    """`limit` is in seconds, a share, a plain number, or for `trust` a word."""

    text: str
    metric: str
    comparison: Comparison
    limit: float | str


def parse(text: str) -> tuple[Limit, ...]:
    """UsageError names the term that is no limit, and the nearest name that is one."""
    return tuple(_parse_term(term.strip()) for term in text.split(","))


def _parse_term(term: str) -> Limit:
    match = _TERM.fullmatch(term)
    if not match:
        raise UsageError(
            f"'{term}' is no limit",
            "A limit is a name, one of < <= > >= =, and a value.",
            f"write for example {EXAMPLE}",
        )
    metric, comparison, value = match.groups()
    if metric not in known_names():
        near = difflib.get_close_matches(metric, known_names(), 3, 0.5)
        raise UsageError(
            f"'{metric}' is no number of a load test",
            f"Near: {', '.join(near)}." if near else "Names are those of load-test --json.",
            f"write for example {EXAMPLE}",
        )
    return Limit(term, metric, cast(Comparison, comparison), _value(metric, value, term))


def _value(metric: str, text: str, term: str) -> float | str:
    if metric == "trust":
        if text not in ("valid", "degraded", "invalid"):
            raise UsageError(f"'{term}' is no limit", "Trust is valid, degraded or invalid.", "trust=valid")
        return text
    try:
        if _is_duration(metric):
            return units.parse_duration(text)
        value = float(text.removesuffix("/s").rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        unit = "a time with its unit, as 500ms" if _is_duration(metric) else "a number"
        raise UsageError(
            f"'{term}' is no limit", f"The value of {metric} is {unit}.", f"for example {EXAMPLE}"
        ) from error
    return value


def known_names() -> tuple[str, ...]:
    spreads = [
        f"{name}_{statistic}" for name in (*_DURATIONS, "user_tokens_per_s") for statistic in _STATISTICS
    ]
    return (*spreads, *_RATES, "goodput", "good_share", "error_rate", "trust")


def _is_duration(metric: str) -> bool:
    name, _, statistic = metric.rpartition("_")
    return statistic in _STATISTICS and name in _DURATIONS


def test(limit: Limit, summary: LoadSummary) -> SloTerm:
    """`met` None where the run has no such value."""
    value = value_of(limit.metric, summary)
    met = None if value is None else _compare(value, limit.comparison, limit.limit)
    return SloTerm(
        text=limit.text,
        metric=limit.metric,
        comparison=limit.comparison,
        limit=limit.limit,
        value=value,
        met=met,
    )


def _compare(value: float | str, comparison: Comparison, limit: float | str) -> bool:
    if isinstance(value, str) or isinstance(limit, str) or comparison == "=":
        return value == limit
    return {"<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit}[comparison]


def value_of(metric: str, summary: LoadSummary) -> float | str | None:
    """The number of that name; None where the run has none."""
    if metric == "trust":
        return summary.trust.status
    if metric == "error_rate":
        return _error_rate(summary)
    if metric in ("goodput", "good_share"):
        slo = summary.slo
        return None if slo is None else slo.goodput_per_s if metric == "goodput" else slo.good_share
    if metric in _RATES:
        found: float | None = getattr(summary.rates, metric)
        return found
    name, _, statistic = metric.rpartition("_")
    spread: Spread | None = getattr(summary, name)
    value: float | None = getattr(spread, statistic) if spread else None
    return value


def _error_rate(summary: LoadSummary) -> float | None:
    """Failed requests of those that ended by themselves."""
    ended = summary.requests.ok + sum(summary.requests.failed.values())
    return sum(summary.requests.failed.values()) / ended if ended else None


def is_good(record: RequestRecord, limits: Sequence[Limit]) -> bool:
    """Whether a request succeeded and met every limit that can be asked of one request alone.

    A percentile's limit is asked of each: with `ttft_p95<500ms` a good request had its token within 500 ms.
    A quantity that the request does not have, as the pace of a single token, is met.
    """
    if record.outcome != "ok" or record.censored:
        return False
    for limit in limits:
        of = _PER_REQUEST.get(limit.metric.rpartition("_")[0])
        value = of(record) if of and _is_duration(limit.metric) else None
        if value is not None and not _compare(value, limit.comparison, limit.limit):
            return False
    return True
