"""The driver's own health during a stage: was the client able to measure what it reports?

All of it concerns the one thread that runs the event loop. Also keeps the garbage collector's full passes out
of a stage: with many records alive one pass stops everything for up to a second, which reads as a slow token.
"""

from __future__ import annotations

import asyncio
import gc
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perfdoctor import stats
from perfdoctor.model import ClientFacts

LAG_PERIOD_S = 0.010
# Timers of epoll and libuv count whole milliseconds: lateness below one is the timer's, not the loop's.
TIMER_RESOLUTION_S = 0.001
_NEVER = 10**6  # generation-1 passes before a full one


class Health:
    """Readings of one stage. `late_s` is filled by the driver: how late each request was sent."""

    def __init__(self) -> None:
        self.late_s = array("d")
        self.redialled = 0
        self._lag_s = array("d")
        self._pause_max_s = 0.0
        self._pause_start_s = 0.0
        self._cpu_s = self._wall_s = 0.0
        self._wait_s: float | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measure while the body runs; inside a running loop, in its thread."""
        ticker = _Ticker(asyncio.get_running_loop(), self._lag_s)
        thresholds = gc.get_threshold()
        gc.callbacks.append(self._on_gc)
        gc.set_threshold(thresholds[0], thresholds[1], _NEVER)
        wall_s, cpu_s, wait_s = time.perf_counter(), time.thread_time(), _runq_wait_s()
        try:
            yield
        finally:
            self._wall_s = time.perf_counter() - wall_s
            self._cpu_s = time.thread_time() - cpu_s
            end_wait_s = _runq_wait_s()
            self._wait_s = None if wait_s is None or end_wait_s is None else end_wait_s - wait_s
            ticker.stop()
            gc.set_threshold(*thresholds)
            gc.callbacks.remove(self._on_gc)

    def restart(self) -> None:
        """Forget what was read so far: what counts begins here."""

    def facts(self) -> ClientFacts:
        """None for what a stage too short to measure cannot tell."""
        lag, wall_s = self._lag_s.tolist(), self._wall_s
        return ClientFacts(
            cpu_share=self._cpu_s / wall_s if wall_s else None,
            loop_lag_p50_s=stats.percentile(lag, 0.5),
            loop_lag_p99_s=stats.percentile(lag, 0.99),
            loop_lag_max_s=max(lag, default=None),
            send_late_p99_s=stats.percentile(self.late_s.tolist(), 0.99),
            gc_pause_max_s=self._pause_max_s,
            runq_wait_share=self._wait_s / wall_s if wall_s and self._wait_s is not None else None,
            redialled=self.redialled,
        )

    def _on_gc(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._pause_start_s = time.perf_counter()
        elif self._pause_start_s:
            self._pause_max_s = max(self._pause_max_s, time.perf_counter() - self._pause_start_s)


class _Ticker:
    """A timer that notes how late it is called: the delay every read of the loop suffers too."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lag_s: array[float]) -> None:
        self._loop, self._lag_s = loop, lag_s
        self._arm()

    def _arm(self) -> None:
        self._due_s = time.perf_counter() + LAG_PERIOD_S
        self._handle = self._loop.call_later(LAG_PERIOD_S, self._tick)

    def _tick(self) -> None:
        self._lag_s.append(max(0.0, time.perf_counter() - self._due_s - TIMER_RESOLUTION_S))
        self._arm()

    def stop(self) -> None:
        self._handle.cancel()


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Exempt everything alive now from garbage collection."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _runq_wait_s() -> float | None:
    """Seconds this thread has been runnable without a CPU; None where the kernel does not tell."""
    try:
        fields = Path("/proc/thread-self/schedstat").read_text().split()
        return int(fields[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None
