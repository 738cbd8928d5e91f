"""How long a chunk that has arrived waits until this process looks at it.

A timerfd becomes readable at a known instant and is then served like any socket, in the order and with the
delay that a chunk would have met. Each expiration stands for one such chunk: a stall that swallows twenty of
them leaves twenty readings, the first waited longest.
"""

from __future__ import annotations

import asyncio
import time
from array import array

from perfdoctor.loadgen.timerfd import Timerfd, open_timerfd

PERIOD_NS = 9_700_000  # no divisor of round token gaps, else it would meet the same moment of each
# Timers of epoll and libuv count whole milliseconds: lateness below one is the timer's, not the loop's.
TIMER_RESOLUTION_S = 0.001
_MOST = 10_000  # readings of one stall; a suspended laptop would leave millions


class ReadLag:
    """Readings in seconds, in `lag_s`, from construction to `stop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timer: Timerfd, lag_s: array[float]) -> None:
        self._loop, self._timer, self._lag_s = loop, timer, lag_s
        self._due_ns = time.perf_counter_ns() + PERIOD_NS
        timer.arm(self._due_ns, PERIOD_NS)
        loop.add_reader(timer.fd, self._on_readable)

    def stop(self) -> None:
        self._on_readable()
        self._loop.remove_reader(self._timer.fd)
        self._timer.close()

    def _on_readable(self) -> None:
        now_ns = time.perf_counter_ns()  # before the read: it is our work, not the chunk's wait
        times = self._timer.expirations()
        for number in range(min(times, _MOST)):
            self._lag_s.append(max(0.0, (now_ns - self._due_ns - number * PERIOD_NS) / 1e9))
        self._due_ns += times * PERIOD_NS


class TimerLag:
    """The fallback where there is no timerfd: how late the loop calls its own timers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lag_s: array[float]) -> None:
        self._loop, self._lag_s = loop, lag_s
        self._arm()

    def stop(self) -> None:
        self._handle.cancel()

    def _arm(self) -> None:
        self._due_s = time.perf_counter() + PERIOD_NS / 1e9
        self._handle = self._loop.call_later(PERIOD_NS / 1e9, self._tick)

    def _tick(self) -> None:
        self._lag_s.append(max(0.0, time.perf_counter() - self._due_s - TIMER_RESOLUTION_S))
        self._arm()


def watch_lag(loop: asyncio.AbstractEventLoop, lag_s: array[float]) -> tuple[ReadLag | TimerLag, bool]:
    """(the meter, whether it measures reads)."""
    timer = open_timerfd()
    return (ReadLag(loop, timer, lag_s), True) if timer else (TimerLag(loop, lag_s), False)
