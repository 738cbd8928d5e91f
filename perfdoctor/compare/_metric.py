"""The numbers that are compared: their values in a run, and how much they differ between two. Pure.

Names are those of `--fail-on`. Where answers differ in length, times to their end are taken per token.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from perfdoctor import change, latency, limits, stats
from perfdoctor.change import Change

if TYPE_CHECKING:
    from perfdoctor.compare._side import OneRun
    from perfdoctor.model import RequestRecord

STATISTICS = {"mean": None, "p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
RATES = ("requests_per_s", "output_tokens_per_s")
SHARES = ("error_rate", "good_share")
POOLED: dict[str, Callable[[RequestRecord], Sequence[float]]] = {
    "itl": latency.inter_token,
    "gap": latency.gaps,
}
SHOWN = (
    "ttft_p50", "ttft_p95", "ttft_p99", "tpot_p50", "tpot_p95", "e2e_mean", "e2e_p50", "e2e_p95", "e2e_p99",
    "requests_per_s", "output_tokens_per_s", "error_rate",
)  # fmt: skip
HIGH_IS_GOOD = (*RATES, "good_share", "user_tokens_per_s")
TO_THE_END = ("e2e", "e2e_from_schedule")


def known_names() -> tuple[str, ...]:
    spreads = [f"{name}_{statistic}" for name in (*latency.OF_REQUEST, *POOLED) for statistic in STATISTICS]
    return (*spreads, *RATES, *SHARES)


def high_is_good(metric: str) -> bool:
    return metric in HIGH_IS_GOOD or metric.rpartition("_")[0] in HIGH_IS_GOOD


def is_per_token(metric: str, unequal: bool) -> bool:
    """Whether it is a time to the end of answers of different length."""
    return unequal and metric.rpartition("_")[0] in TO_THE_END


def is_share(metric: str) -> bool:
    return metric in SHARES


def value_of(metric: str, run: OneRun, per_token: bool = False) -> float | None:
    name, _, statistic = metric.rpartition("_")
    if metric in (*RATES, *SHARES):
        found = limits.value_of(metric, run.summary)
        return found if isinstance(found, float) else None
    values = _values(name, run, per_token)
    share = STATISTICS[statistic]
    if share is None:
        return stats.mean(values)
    return None if statistic == "p99" and len(values) < stats.P99_MIN_N else stats.percentile(values, share)


def count_of(metric: str, run: OneRun) -> int:
    """Values that the number is made of."""
    if metric in SHARES:
        return _ended(run)
    return len(run.answered) if metric in RATES else len(_values(metric.rpartition("_")[0], run))


def change_of(metric: str, before: OneRun, after: OneRun, per_token: bool) -> Change | None:
    """Over the requests of one run each."""
    name, _, statistic = metric.rpartition("_")
    if metric in SHARES:
        return _change_of_share(metric, before, after)
    if metric in RATES:
        counted = metric == "output_tokens_per_s"
        return _on_the_value(
            metric, before, after, change.of_rates(_work(before, counted), _work(after, counted))
        )
    was, now = _values(name, before, per_token), _values(name, after, per_token)
    share = STATISTICS[statistic]
    return change.of_means(was, now) if share is None else change.of_percentiles(was, now, share)


def why_no_interval(metric: str, n: int) -> str:
    """Of values that are there."""
    share = STATISTICS.get(metric.rpartition("_")[2])
    least = change.LEAST_N if share is None else stats.least_n(share)
    if n < least:
        return f"{n} values, {least} at least are needed"
    return f"successive values are so alike that {n} of them count as fewer than {least}"


def _values(name: str, run: OneRun, per_token: bool = False) -> list[float]:
    if name in POOLED:
        return list(itertools.chain.from_iterable(map(POOLED[name], run.answered)))
    of = latency.OF_REQUEST[name]
    records = run.answered if name in TO_THE_END else [r for r in run.answered if r.token_at_s]
    if not per_token:
        return latency.present(map(of, records))
    return [value / r.output_tokens for r in records if r.output_tokens and (value := of(r)) is not None]


def _work(run: OneRun, tokens: bool) -> tuple[list[float], list[float]]:
    """What each answer brought, and the time since the one before it ended."""
    ended = sorted((r for r in run.answered if r.end_s is not None), key=lambda r: r.end_s or 0.0)
    gaps = [(b.end_s or 0.0) - (a.end_s or 0.0) for a, b in itertools.pairwise(ended)]
    return [float(r.output_tokens or 0) if tokens else 1.0 for r in ended[1:]], gaps


def _on_the_value(metric: str, before: OneRun, after: OneRun, found: Change | None) -> Change | None:
    """The interval laid around the ratio of the rates as they are reported, which are of the busy time."""
    was, now = value_of(metric, before), value_of(metric, after)
    if found is None or not was or not now:
        return None
    ratio = now / was
    return Change(ratio, found.low / found.ratio * ratio, found.high / found.ratio * ratio)


def _ended(run: OneRun) -> int:
    return run.summary.requests.ok + sum(run.summary.requests.failed.values())


def _change_of_share(metric: str, before: OneRun, after: OneRun) -> Change | None:
    was, now = value_of(metric, before), value_of(metric, after)
    if was is None or now is None:
        return None
    n, m = _ended(before), _ended(after)
    return change.of_shares(round(was * n), n, round(now * m), m)
