"""A time limit on a block of the current task, at the cost of one timer.

aiohttp's own `total` limit enters a context at every read, which is several percent of what a token costs;
`asyncio.timeout` needs Python 3.11.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class TimeLimit:
    """Raises asyncio.TimeoutError out of the block when it takes longer; other cancellations pass."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False

    def __enter__(self) -> TimeLimit:
        task = asyncio.current_task()
        assert task is not None, "a time limit belongs inside a task"
        self._task = task
        self._handle = asyncio.get_running_loop().call_later(self._seconds, self._expire)
        return self

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.cancel()
        if not self._expired:
            return
        # Someone else's cancellation came too: it wins. Python 3.10 cannot tell the two apart.
        uncancel = getattr(self._task, "uncancel", None)
        others = uncancel() if uncancel else 0
        if others == 0 and kind is asyncio.CancelledError:
            raise asyncio.TimeoutError(f"no complete answer within {self._seconds:g} s") from error
