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
class Style:
    """`percentiles`: `linear` as numpy interpolates, `rank` the nearest rank."""

    columns: tuple[Column, ...]
    percentiles: Literal["linear", "rank"]

    def rows(self, records: Sequence[RequestRecord]) -> tuple[StyleRow, ...]:
        """Of the steady requests that succeeded, as all these tools count them."""
        steady = [r for r in latency.without_prompt_tail(records) if r.phase == "steady"]
        answered = latency.ok_records(steady)
        return tuple(self._row(column, answered) for column in self.columns)

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
