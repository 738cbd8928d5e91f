"""Requests thrown out of the KV cache, counted over the lines of a log."""

from __future__ import annotations

from collections.abc import Iterable

from perfdoctor.logs._line import Said


class Preempted:
    """`count` is None until a line came from whose writer a preemption would be known.

    A line that tells a total since the server's start counts what it is above the total before; the first
    of them, whose total may be old, counts as one.
    """

    def __init__(self) -> None:
        self.count: float | None = None
        self._total: float | None = None

    def take(self, said: Iterable[Said]) -> None:
        for part in said:
            if part.kind == "preemption":
                self.count = (self.count or 0.0) + part.values.get("preemptions", 0.0)
                if total := part.values.get("preemptions_total"):
                    self.count += total - self._total if self._total and total > self._total else 1.0
                    self._total = total
