"""Limits on a change, as `ttft_p95>+10%`: their grammar, and when one is crossed. Pure.

A limit is crossed when the change is past it **and** the 95 % interval of the change leaves out that
nothing changed. Shares, such as error_rate, change by percentage points. Where a change past the limit has no
interval, or one side no such number, nothing is decided, and nobody passes.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from perfdoctor import units
from perfdoctor.compare import _metric
from perfdoctor.errors import UsageError
from perfdoctor.model import ComparedMetric, CrossedLimit

EXAMPLE = "ttft_p95>+10%,requests_per_s<-5%"
_TERM = re.compile(r"([a-z][a-z0-9_]*)\s*([<>])\s*([+-]\d+(?:\.\d*)?)\s*%")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ChangeLimit:
    """`limit` is a share of the value before, or a difference of shares."""

    text: str
    metric: str
    comparison: Literal["<", ">"]
    limit: float


def parse(text: str) -> tuple[ChangeLimit, ...]:
    """UsageError names the term that is no limit of a change."""
    return tuple(_parse_term(term.strip()) for term in text.split(","))


def _parse_term(term: str) -> ChangeLimit:
    match, named = _TERM.fullmatch(term), _NAME.match(term)
    if named and named.group() not in _metric.known_names():
        near = difflib.get_close_matches(named.group(), _metric.known_names(), 3, 0.5)
        raise UsageError(
            f"'{named.group()}' is no number that is compared",
            f"Near: {', '.join(near)}." if near else "Names are those of load-test --json.",
            f"write for example {EXAMPLE}",
        )
    if not match or not math.isfinite(value := float(match.group(3)) / 100):
        raise UsageError(
            f"'{term}' is no limit of a change",
            "It is a name, < or >, and a signed percentage of the value before.",
            f"write for example {EXAMPLE}",
        )
    metric, comparison, signed = match.groups()
    if (comparison == ">") != (signed[0] == "+"):
        raise UsageError(
            f"'{term}' would be crossed by runs that are equal",
            "Growth is limited with >+, decline with <-.",
            f"write for example {EXAMPLE}",
        )
    return ChangeLimit(term, metric, comparison, value)  # type: ignore[arg-type]


def decide(limit: ChangeLimit, rows: Mapping[str, ComparedMetric]) -> CrossedLimit:
    row = rows[limit.metric]
    if row.ratio is None:
        return CrossedLimit(text=limit.text, crossed=None, reason=f"no change is known: {row.reason}")
    none = 0.0 if _metric.is_share(limit.metric) else 1.0  # the ratio where nothing changed
    edge = none + limit.limit
    said = f"it changed by {_signed(row.ratio - none)}"
    if not (row.ratio > edge if limit.comparison == ">" else row.ratio < edge):
        return CrossedLimit(text=limit.text, crossed=False, reason=said)
    if row.interval is None:
        return CrossedLimit(
            text=limit.text, crossed=None, reason=f"{said}, without an interval: {row.reason}"
        )
    low, high = row.interval
    between = f"{said} (95 %: {_signed(low - none)} to {_signed(high - none)})"
    if low <= none <= high:
        return CrossedLimit(text=limit.text, crossed=False, reason=f"{between}, which may be chance")
    return CrossedLimit(text=limit.text, crossed=True, reason=between)


def _signed(value: float) -> str:
    return ("+" if value >= 0 else "") + units.share(value)
