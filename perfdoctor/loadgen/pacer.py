"""Waits for absolute instants, closer than the whole milliseconds of an event loop's timers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from perfdoctor.loadgen.timerfd import open_timerfd

SPIN_S = 0.001  # the granularity of the loop's timers: the last stretch is waited for by yielding


class Alarm:
    """Calls back once `at_ns` of perf_counter_ns is over; the loop's timers may be early by a millisecond."""

    def __init__(self, loop: asyncio.AbstractEventLoop, at_ns: int, callback: Callable[[], object]) -> None:
        self._loop, self._at_ns, self._callback = loop, at_ns, callback
        self._arm()

    def _arm(self) -> None:
        left_ns = self._at_ns - time.perf_counter_ns()
        if left_ns > 0:
            self._timer = self._loop.call_later(left_ns / 1e9, self._arm)
        else:
            self._timer = self._loop.call_later(0, self._callback)

    def cancel(self) -> None:
        self._timer.cancel()


class Pacer:
    """For one waiter on one loop. By timerfd; without one, by a loop timer and a short spin."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timerfd: bool = True) -> None:
        self._loop = loop
        self._timer = open_timerfd() if timerfd else None
        self._waiter: asyncio.Future[None] | None = None
        if self._timer:
            loop.add_reader(self._timer.fd, self._on_timer)

    def close(self) -> None:
        if self._timer:
            self._loop.remove_reader(self._timer.fd)
            self._timer.close()
            self._timer = None

    async def until(self, at_ns: int | None) -> None:
        """Return at `at_ns` of perf_counter_ns or when woken, at once if it is over; None: when woken."""
        if at_ns is not None and at_ns <= time.perf_counter_ns():
            return
        self._waiter = waiter = self._loop.create_future()
        try:
            if at_ns is None:
                await waiter
            elif self._timer:
                self._timer.arm(at_ns)
                await waiter
            else:
                await self._by_loop_timer(waiter, at_ns)
        finally:
            self._waiter = None

    def wake(self) -> None:
        """End the wait that is going on, if there is one."""
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def _on_timer(self) -> None:
        if self._timer and self._timer.expirations():
            self.wake()

    async def _by_loop_timer(self, waiter: asyncio.Future[None], at_ns: int) -> None:
        left_s = (at_ns - time.perf_counter_ns()) / 1e9
        if left_s > SPIN_S:
            await asyncio.wait({waiter}, timeout=left_s - SPIN_S)
        while not waiter.done() and time.perf_counter_ns() < at_ns:  # noqa: ASYNC110 - no event comes
            await asyncio.sleep(0)
