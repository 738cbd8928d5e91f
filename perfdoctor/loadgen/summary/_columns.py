"""What many requests have in common, as arrays: a run may hold a million of them. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfdoctor.model import RequestRecord

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float64]


def column(values: Iterable[float | None]) -> Numbers:
    """The known ones, in ascending order."""
    import numpy as np

    return np.sort(np.array([v for v in values if v is not None], dtype=np.float64))


@dataclass(frozen=True, slots=True)
class Delivered:
    """Tokens as they arrived, in order of time; `counted` whether any answer's tokens were."""

    at_s: Numbers
    tokens: Numbers
    counted: bool

    def within(self, start_s: float, end_s: float) -> float:
        return math.fsum(self.tokens[(self.at_s > start_s) & (self.at_s <= end_s)].tolist())

    def most_in(self, width_s: float, start_s: float, end_s: float) -> float:
        """Most tokens in any stretch of that width inside (start, end]."""
        import numpy as np

        inside = (self.at_s > start_s) & (self.at_s <= end_s)
        at_s = self.at_s[inside]
        if not len(at_s):
            return 0.0
        sums = np.concatenate([[0.0], np.cumsum(self.tokens[inside])])
        oldest = np.searchsorted(at_s, at_s - width_s, side="right")
        # Of chunks with one stamp only the last has all of them behind it, and it is the most.
        return float(np.max(sums[1:] - sums[oldest]))


def delivered(records: Sequence[RequestRecord]) -> Delivered:
    """Of all requests, failed ones too. An answer in one piece arrived at its end, tokens that the server
    did not count chunk by chunk are spread evenly over the chunks."""
    import numpy as np

    at_s, tokens = array("d"), array("d")
    counted = False
    for r in records:
        if r.output_tokens is None:
            continue
        counted = True
        if r.token_at_s:
            chunks = len(r.token_at_s)
            told = len(r.token_counts) == chunks
            at_s.extend(r.token_at_s)
            tokens.extend(r.token_counts if told else (r.output_tokens / chunks,) * chunks)
        elif r.end_s is not None and r.outcome == "ok":
            at_s.append(r.end_s)
            tokens.append(r.output_tokens)
    times, weights = np.array(at_s, dtype=np.float64), np.array(tokens, dtype=np.float64)
    order = np.lexsort((weights, times))  # the weights too, so that the order of the records is nothing
    return Delivered(times[order], weights[order], counted)


@dataclass(frozen=True, slots=True)
class Open:
    """When requests were sent and when they ended, each in ascending order; of those with both instants."""

    sent_s: Numbers
    end_s: Numbers

    def means(self, edges_s: Sequence[float]) -> list[float]:
        """Requests in flight between each edge and the next, on average."""
        import numpy as np

        edges = np.array(edges_s, dtype=np.float64)
        area = _area(self.sent_s, edges) - _area(self.end_s, edges)
        found: list[float] = (np.diff(area) / np.diff(edges)).round(9).clip(min=0.0).tolist()  # sums drift
        return found

    def most(self, start_s: float, end_s: float) -> int:
        """In flight at one instant of that time. At an instant that one ends and another is sent, one is."""
        import numpy as np

        at_start = np.searchsorted(self.sent_s, start_s, "right") - np.searchsorted(
            self.end_s, start_s, "right"
        )
        risen = np.arange(1, len(self.sent_s) + 1) - np.searchsorted(self.end_s, self.sent_s, "right")
        inside = risen[(self.sent_s > start_s) & (self.sent_s <= end_s)]
        return int(max(at_start, inside.max(initial=0)))


def open_requests(records: Sequence[RequestRecord]) -> Open:
    both = [r for r in records if r.sent_s is not None and r.end_s is not None]
    return Open(column(r.sent_s for r in both), column(r.end_s for r in both))


def _area(steps_s: Numbers, at_s: Numbers) -> Numbers:
    """Below a count that rises by one at each step, up to each instant."""
    import numpy as np

    sums = np.concatenate([[0.0], np.cumsum(steps_s)])
    passed = np.searchsorted(steps_s, at_s, side="right")
    area: Numbers = passed * at_s - sums[passed]
    return area
