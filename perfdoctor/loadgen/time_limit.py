"""A limit on the time of blocks of code in many tasks, all of one length: one timer for all of them.

Such blocks are due in the order in which they began, so only the oldest is watched. A timer for each costs a
plain HTTP request 5 % of its CPU, and aiohttp's own `total` limit enters a context at every read;
`asyncio.timeout` needs Python 3.11.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class TimeLimits:
    """`with limits.start(): ...` in any task of one event loop."""

    __slots__ = ("_open", "_watched", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._open: dict[TimeLimit, float] = {}  # block -> its end, in the order in which they began
        self._watched = False

    def start(self) -> TimeLimit:
        return TimeLimit(self)

    def enter(self, block: TimeLimit) -> None:
        loop = asyncio.get_running_loop()
        self._open[block] = loop.time() + self.seconds
        if not self._watched:
            self._watched = True
            loop.call_later(self.seconds, self._look, loop)

    def leave(self, block: TimeLimit) -> None:
        self._open.pop(block, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._watched = False
        now_s = loop.time()
        for block, end_s in list(self._open.items()):
            if end_s > now_s:
                self._watched = True
                loop.call_later(end_s - now_s, self._look, loop)
                return
            block.expire()


class TimeLimit:
    """Raises asyncio.TimeoutError out of the block when it takes longer; other cancellations pass."""

    __slots__ = ("_expired", "_limits", "_task")

    def __init__(self, limits: TimeLimits) -> None:
        self._limits = limits
        self._expired = False

    def __enter__(self) -> TimeLimit:
        task = asyncio.current_task()
        assert task is not None, "a time limit belongs inside a task"
        self._task = task
        self._limits.enter(self)
        return self

    def expire(self) -> None:
        self._limits.leave(self)
        self._expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limits.leave(self)
        if not self._expired:
            return
        # Someone else's cancellation came too: it wins. Python 3.10 cannot tell the two apart.
        uncancel = getattr(self._task, "uncancel", None)
        others = uncancel() if uncancel else 0
        if others == 0 and kind is asyncio.CancelledError:
            raise asyncio.TimeoutError(f"no complete answer within {self._limits.seconds:g} s") from error
