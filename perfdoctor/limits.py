"""Limits on the numbers of a load test: `ttft_p95<500ms,error_rate<1%,requests_per_s>10,trust=valid`. Pure.

One grammar for what must hold (`--slo`) and for what must not be (`--fail-on`). Names are those of the JSON.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from perfdoctor import latency, stats, units
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
_RATES = {
    "requests_per_s": "requests served a second while the load was the one asked for; one across an edge of "
    "that time counts with the share of its tokens that arrived inside",
    "output_tokens_per_s": "tokens that arrived a second in that time, those of failed requests too",
    "input_tokens_per_s": "prompt tokens a second of the answers that began in that time",
    "peak_output_tokens_per_s": "most tokens a second in any stretch of about one second of that time",
    "sent_per_s": "requests sent a second by an open loop, between the first and the last",
    "in_flight_mean": "requests open at once, on average over that time",
    "in_flight_max": "most requests open at one instant of that time",
}
DEFINITIONS = _RATES | {
    "goodput": "good requests a second: those that succeeded, met every limit of the SLO that can be asked "
    "of one request, and ended in the busy time",
    "good_share": "good requests as a share of all that ended, failed ones too",
    "error_rate": "failed requests as a share of all that ended by themselves",
    "trust": "whether the load generator's own errors are small beside what it measured: valid, degraded or "
    "invalid",
}
_PACES = ("tpot", "user_tokens_per_s")
_SHARES = ("good_share", "error_rate")
_TRUST = ("valid", "degraded", "invalid")


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
    return Limit(term, metric, cast(Comparison, comparison), _value(metric, comparison, value, term))


def _value(metric: str, comparison: str, text: str, term: str) -> float | str:
    if metric == "trust":
        if comparison != "=" or text not in _TRUST:
            raise UsageError(
                f"'{term}' is no limit", f"Trust is one word of {', '.join(_TRUST)}.", "write trust=valid"
            )
        return text
    kind, parse_value = _kind(metric)
    try:
        value = parse_value(text)
    except ValueError as error:
        raise UsageError(
            f"'{term}' is no limit", f"The value of {metric} is {kind}.", f"write for example {EXAMPLE}"
        ) from error
    return value


def _kind(metric: str) -> tuple[str, Callable[[str], float]]:
    """What a value of that metric looks like, and its parser, which raises ValueError."""
    if _is_duration(metric):
        return "a time with its unit, as 500ms", _parse_time
    if metric in _SHARES:
        return "a share, as 1% or 0.01", _parse_share
    if "_per_s" in metric or metric == "goodput":
        return "a number a second, as 10 or 10/s", lambda text: _parse_number(text.removesuffix("/s"))
    return "a number", _parse_number


def _parse_time(text: str) -> float:
    """A bare number would be seconds here and milliseconds to many a reader."""
    if not text[-1:].isalpha():
        raise ValueError(text)
    return units.parse_duration(text)


def _parse_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError(text)
    return value


def _parse_share(text: str) -> float:
    """A number above 1 without a percent sign was meant as percent; nobody may guess which."""
    percent = text.endswith("%")
    value = _parse_number(text.rstrip("% ")) / (100 if percent else 1)
    if value > 1:
        raise ValueError(text)
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
    met = None if value is None else compare(value, limit.comparison, limit.limit)
    return SloTerm(
        text=limit.text,
        metric=limit.metric,
        comparison=limit.comparison,
        limit=limit.limit,
        value=value,
        met=met,
        missing=_why_missing(limit.metric, summary) if value is None else None,
    )


def compare(value: float | str, comparison: Comparison, limit: float | str) -> bool:
    """Whether a value is as a limit wants it; words are only equal or not."""
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


def _why_missing(metric: str, summary: LoadSummary) -> str:
    """Of a number that the run has not."""
    name, _, statistic = metric.rpartition("_")
    if metric not in _RATES and statistic in _STATISTICS:
        return _why_empty(getattr(summary, name), statistic)
    if metric in ("goodput", "good_share") and (summary.slo is None or summary.requests.ok):
        return "it needs an SLO" if summary.slo is None else "no request has what the SLO asks of each"
    if metric in _SHARES:
        return "no request ended"
    if metric == "sent_per_s" and summary.arrivals is None:
        return "a closed loop asks for no rate"
    if "tokens" in metric and summary.rates.start_s is not None:
        return "no tokens were counted, or in less than a second"
    return "the load was at no time the one asked for"


def _why_empty(spread: Spread | None, statistic: str) -> str:
    if spread is None:
        return "the tokens of each chunk are not known"
    if spread.n == 0:
        return "no request has one"
    if statistic == "p99" and spread.n < stats.P99_MIN_N:
        return f"p99 needs {stats.P99_MIN_N} values, there are {spread.n}"
    return "it lies among the failed requests, which are endless"


def _error_rate(summary: LoadSummary) -> float | None:
    """Failed requests of those that ended by themselves."""
    ended = summary.requests.ok + sum(summary.requests.failed.values())
    return sum(summary.requests.failed.values()) / ended if ended else None


def can_be_asked(records: Sequence[RequestRecord], limits: Sequence[Limit]) -> bool:
    """Whether some answer has each quantity that the limits ask of one request; true where none succeeded.

    Answers in one piece have no first token: to call them all bad would blame the server for the load.
    """
    answered = latency.ok_records(records)
    names = {limit.metric.rpartition("_")[0] for limit in limits} & set(latency.OF_REQUEST) - set(_PACES)
    return (
        all(any(latency.OF_REQUEST[name](r) is not None for r in answered) for name in names) or not answered
    )


def is_good(record: RequestRecord, limits: Sequence[Limit]) -> bool:
    """Whether a request succeeded and met every limit that can be asked of one request alone.

    A percentile's limit is asked of each: with `ttft_p95<500ms` a good request had its token within 500 ms.
    A single token has no pace, and no fault by it; a first token or answer that never came is one. A limit of
    the least value is one request's alone, and met by the others.
    """
    if record.outcome != "ok" or record.censored:
        return False
    for limit in limits:
        name, _, statistic = limit.metric.rpartition("_")
        of = latency.OF_REQUEST.get(name) if statistic in _STATISTICS and statistic != "min" else None
        if of is None:
            continue
        value = of(record)
        if value is None and name not in _PACES:
            return False
        if value is not None and not compare(value, limit.comparison, limit.limit):
            return False
    return True
