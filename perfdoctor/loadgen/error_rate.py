"""When too many requests fail to go on. Pure: outcomes in, a reason to stop or None out."""

from __future__ import annotations

import math
from collections import deque

from perfdoctor import units

WINDOW = 100  # last requests that are looked at: a server that breaks late is noticed as soon as an early one
MIN_SAMPLE = 20  # finished requests below which nothing is concluded; a guess


class ErrorRate:
    """Watches the share of failures among the last requests against a limit, 0-1.

    Both numbers above grow for limits so small that a single failure would cross them.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        one_failure = math.ceil(1 / limit) if limit > 0 else 1
        self._enough = max(MIN_SAMPLE, one_failure) if limit > 0 else 1
        self._last: deque[bool] = deque(maxlen=max(WINDOW, 2 * one_failure))
        self._failed = 0

    def note(self, failed: bool) -> str | None:
        """Take in a finished request; why the load should stop, if it should."""
        last = self._last
        if len(last) == last.maxlen:
            self._failed -= last[0]
        last.append(failed)
        self._failed += failed
        if len(last) < self._enough or self._failed <= self.limit * len(last):
            return None
        return (
            f"stopped: {self._failed} of the last {len(last)} requests failed, more than the "
            f"{units.share(self.limit)} of --max-error-rate"
        )
