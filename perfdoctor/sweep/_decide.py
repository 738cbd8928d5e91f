"""Whether a level is within an SLO, by more than chance. Pure.

A limit on a percentile is one on a count: `ttft_p95<500ms` holds where at least 95 % of all requests have
their token in time. Of n requests, k were; if k would be that high in fewer than 2.5 % of cases with a true
share of just 95 %, the limit is met, and if it would be that low, missed (the exact binomial test behind
Clopper and Pearson 1934). Otherwise n requests do not decide it. 72, all in time, are needed for a p95.

Requests are taken as independent, which those of one queue are not quite. Limits on means, extremes and rates
are taken as measured: a single run does not tell how far they vary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from perfdoctor import latency, limits
from perfdoctor.limits import Limit
from perfdoctor.model import Decision, LoadSummary, RequestRecord, Spread

ALPHA = 0.025  # of each side, so that both together err in 5 %
_SHARES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
_WORDS = {"met": "met", "missed": "missed", "not_decided": "not decided"}


def decide(text: str, records: Sequence[RequestRecord], summary: LoadSummary) -> tuple[Decision, list[str]]:
    """The decision on all limits together, and those that are not met with their values."""
    found = [(limit, decide_limit(limit, records, summary)) for limit in limits.parse(text)]
    reasons = [
        f"{limit.text}: {_WORDS[decision]}, it is {_value(limit, summary)}"
        for limit, decision in found
        if decision != "met"
    ]
    decisions = {decision for _, decision in found}
    return "missed" if "missed" in decisions else "not_decided" if reasons else "met", reasons


def decide_limit(limit: Limit, records: Sequence[RequestRecord], summary: LoadSummary) -> Decision:
    """Of one limit; not decided where the run has no such value."""
    term = limits.test(limit, summary)
    if term.met is None:
        return "not_decided"
    by_value: Decision = "met" if term.met else "missed"
    if isinstance(limit.limit, str) or limit.comparison == "=":
        return by_value
    low_is_good = limit.comparison in ("<", "<=")
    if limit.metric in ("error_rate", "good_share"):
        return _share(limit.metric, limit.limit, low_is_good, summary, by_value)
    name, _, statistic = limit.metric.rpartition("_")
    if statistic not in _SHARES:
        return by_value
    share = _SHARES[statistic] if low_is_good else 1 - _SHARES[statistic]
    of = latency.OF_REQUEST.get(name)
    if of is None:
        return _by_interval(getattr(summary, name), statistic, limit.limit, low_is_good, by_value)
    values = latency.present(map(of, records))
    inside = sum(limits.compare(value, limit.comparison, limit.limit) for value in values)
    return by_count(inside, len(values), share)


def by_count(inside: int, n: int, share: float) -> Decision:
    """Whether at least `share` of everything is inside, seen that `inside` of n were."""
    outside = n - inside
    if at_most(outside, n, 1 - share) <= ALPHA:
        return "met"
    if at_least(outside, n, 1 - share) <= ALPHA:
        return "missed"
    return "not_decided"


def at_most(k: int, n: int, p: float) -> float:
    """Probability of k or fewer of n, each with probability p (binomial)."""
    if k >= n or p <= 0:
        return 1.0
    if k < 0 or p >= 1:
        return 0.0
    log_p, log_q, whole = math.log(p), math.log1p(-p), math.lgamma(n + 1)
    terms = (
        math.exp(whole - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_p + (n - i) * log_q)
        for i in range(k + 1)
    )
    return min(1.0, math.fsum(terms))


def at_least(k: int, n: int, p: float) -> float:
    return 1.0 if k <= 0 else 1.0 - at_most(k - 1, n, p)


def requests_needed(text: str) -> int:
    """So many, all in time, decide every percentile of an SLO; 1 without one."""
    names = [limit.metric.rpartition("_")[2] for limit in limits.parse(text)]
    tails = [min(_SHARES[name], 1 - _SHARES[name]) for name in names if name in _SHARES]
    return max((math.ceil(math.log(ALPHA) / math.log1p(-tail)) for tail in tails), default=1)


def _share(
    metric: str, limit: float, low_is_good: bool, summary: LoadSummary, by_value: Decision
) -> Decision:
    """No failure at all meets any limit: hundreds of requests would be needed to show a share near zero."""
    failed = sum(summary.requests.failed.values())
    n = failed + summary.requests.ok
    hits = failed if metric == "error_rate" else round(_good_share(summary) * n)
    if (metric == "error_rate" and not failed) or (metric == "good_share" and hits == n):
        return by_value
    outside = hits if low_is_good else n - hits
    return by_count(n - outside, n, 1 - limit if low_is_good else limit)


def _good_share(summary: LoadSummary) -> float:
    return (summary.slo.good_share if summary.slo else None) or 0.0


def _by_interval(
    spread: Spread | None, statistic: str, limit: float, low_is_good: bool, by_value: Decision
) -> Decision:
    """Of what has many values in a request, such as gaps."""
    between = spread.intervals.get(statistic) if spread else None
    if between is None:
        return "not_decided"
    straddles = between[0] <= limit <= between[1]
    return "not_decided" if straddles else by_value


def _value(limit: Limit, summary: LoadSummary) -> str:
    from perfdoctor.reports import _load_words

    term = limits.test(limit, summary)
    return "without a value here" if term.value is None else _load_words.term_value(term)
