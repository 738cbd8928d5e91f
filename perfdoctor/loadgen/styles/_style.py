"""Another tool's table from the same instants: what it counts from and to, and how it takes percentiles.

For reconciling two tools on one run. A stamp that we do not have is not invented: the definition says what
stands in for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from perfdoctor import latency, stats
from perfdoctor.model import RequestRecord, StyleRow

Values = Callable[[RequestRecord], Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Column:
    """One quantity of a tool: its own name and unit, and its values of one request in that unit."""

    name: str
    unit: str
    definition: str
    values: Values


@dataclass(frozen=True, slots=True)
class Total:
    """What a tool divides by the length of its run: a part of each answer, added up."""

    name: str
    unit: str
    definition: str
    part: Callable[[RequestRecord], float | None]


@dataclass(frozen=True, slots=True)
class Style:
    """`percentiles`: `linear` as numpy interpolates, `rank` the nearest rank."""

    columns: tuple[Column, ...]
    percentiles: Literal["linear", "rank"]
    totals: tuple[Total, ...] = ()

    def rows(self, records: Sequence[RequestRecord]) -> tuple[StyleRow, ...]:
        """Of the steady requests that succeeded, as all these tools count them."""
        steady = [
            r for r in latency.without_prompt_tail(records) if r.phase == "steady" and latency.is_possible(r)
        ]
        answered = latency.ok_records(steady)
        span_s = _span_s(steady)
        totals = (_total(total, answered, span_s) for total in self.totals)
        return (*totals, *(self._row(column, answered) for column in self.columns))

    def _row(self, column: Column, answered: Sequence[RequestRecord]) -> StyleRow:
        found = sorted(v for r in answered for v in column.values(r) if v is not None)
        at = _linear if self.percentiles == "linear" else stats.percentile
        return StyleRow(
            name=column.name,
            unit=column.unit,
            definition=column.definition,
            n=len(found),
            mean=stats.mean(found),
            p50=at(found, 0.50),
            p90=at(found, 0.90),
            p95=at(found, 0.95),
            p99=at(found, 0.99),
        )


def _span_s(steady: Sequence[RequestRecord]) -> float:
    """Of the run as all these tools take it: first request to last end, users busy or not."""
    sent = [r.sent_s for r in steady if r.sent_s is not None]
    ended = [r.end_s for r in steady if r.end_s is not None]
    return max(ended) - min(sent) if sent and ended else 0.0


def _total(total: Total, answered: Sequence[RequestRecord], span_s: float) -> StyleRow:
    parts = latency.present(map(total.part, answered))
    return StyleRow(
        name=total.name,
        unit=total.unit,
        definition=total.definition,
        n=len(parts),
        mean=math.fsum(parts) / span_s if parts and span_s > 0 else None,
    )


def _linear(ordered: Sequence[float], p: float) -> float | None:
    """Between the two nearest values, as numpy's default."""
    if not ordered:
        return None
    place = p * (len(ordered) - 1)
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def milliseconds(start_s: float | None, end_s: float | None, parts: int = 1) -> list[float | None]:
    """A span in milliseconds, divided; nothing where an end is missing or there are no parts."""
    if start_s is None or end_s is None or parts < 1:
        return []
    return [(end_s - start_s) * 1e3 / parts]


def gaps_ms(record: RequestRecord) -> list[float]:
    return [gap * 1e3 for gap in latency.gaps(record)]


def tokens(record: RequestRecord) -> int:
    """Output tokens as counted; 0 where nobody counted."""
    return record.output_tokens or 0


def requests(name: str, unit: str) -> Total:
    return Total(
        name, unit, "answers that succeeded, by the time from the first request to the last end", _one
    )


def output(name: str, unit: str) -> Total:
    return Total(name, unit, "their output tokens, by the same time", lambda r: r.output_tokens)


def inputs(name: str, unit: str) -> Total:
    return Total(name, unit, "their prompt tokens, by the same time", lambda r: r.prompt_tokens)


def all_tokens(name: str, unit: str) -> Total:
    return Total(name, unit, "their prompt and output tokens, by the same time", _both)


def seconds(record: RequestRecord) -> float | None:
    """From sent to the stream's end."""
    sent_s, end_s = record.sent_s, record.end_s
    return None if sent_s is None or end_s is None else end_s - sent_s


def _one(_: RequestRecord) -> float:
    return 1.0


def _both(record: RequestRecord) -> float | None:
    known = [n for n in (record.prompt_tokens, record.output_tokens) if n is not None]
    return sum(known) if known else None
