"""When too many requests fail to go on. Pure: outcomes in, a reason to stop or None out."""

from __future__ import annotations

import math
from collections import deque

from perfdoctor import units

WINDOW = 100  # last requests looked at beside the whole: a server that breaks late is noticed as soon
MIN_SAMPLE = 20  # finished requests below which nothing is concluded; a guess
SIGMAS = 3.0  # chance alone puts a server that fails just as often as allowed above this once in 700 looks


class ErrorRate:
    """Watches the share of failures, 0-1, against a limit, over the whole load and over the last requests."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._failed = self._failed_last = self._n = 0

    def note(self, failed: bool) -> str | None:
        """Take in a finished request; why the load should stop, if it should."""
        last = self._last
        if len(last) == WINDOW:
            self._failed_last -= last[0]
        last.append(failed)
        self._failed_last += failed
        self._failed += failed
        self._n += 1
        if not failed:
            return None
        if self._certainly_above(self._failed_last, len(last)):
            return self._reason(self._failed_last, f"the last {len(last)}") + "; the load was stopped"
        if self._certainly_above(self._failed, self._n):
            return self._reason(self._failed, str(self._n)) + "; the load was stopped"
        return None

    def at_end(self) -> str | None:
        """The plain share, when the load is over."""
        crossed = self._n and self._failed > self.limit * self._n
        return self._reason(self._failed, str(self._n)) if crossed else None

    def _certainly_above(self, failed: int, n: int) -> bool:
        """Above the limit by more than the scatter of a binomial count around it."""
        scatter = math.sqrt(n * self.limit * (1 - self.limit))
        return n >= MIN_SAMPLE and failed > self.limit * n + SIGMAS * scatter

    def _reason(self, failed: int, of: str) -> str:
        return (
            f"{failed} of {of} requests failed, more than the {units.share(self.limit)} of --max-error-rate"
        )
