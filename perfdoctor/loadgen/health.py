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
from perfdoctor.loadgen.lag import watch_lag
from perfdoctor.model import ClientFacts

_NEVER = 10**6  # generation-1 passes before a full one


class Health:
    """Readings of one stage. `late_s` is filled by the issuer: how late each request was sent."""

    def __init__(self) -> None:
        self.late_s = array("d")
        self.redialled = 0
        self._lag_s = array("d")
        self._of_reads = False  # whether the lag is that of reads
        self._pause_start_s = 0.0
        self._cpu_s = self._wall_s = 0.0
        self._wait_s: float | None = None
        self._begin()

    def _begin(self) -> None:
        self._pause_max_s = 0.0
        self._start_s, self._start_cpu_s, self._start_wait_s = _readings()

    def restart(self) -> None:
        """Forget what was read so far: the stage that counts begins here."""
        del self._lag_s[:], self.late_s[:]
        self.redialled = 0
        self._begin()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measure while the body runs; inside a running loop, in its thread."""
        lag, self._of_reads = watch_lag(asyncio.get_running_loop(), self._lag_s)
        thresholds = gc.get_threshold()
        gc.callbacks.append(self._on_gc)
        gc.set_threshold(thresholds[0], thresholds[1], _NEVER)
        self._begin()
        try:
            yield
        finally:
            wall_s, cpu_s, wait_s = _readings()
            self._wall_s, self._cpu_s = wall_s - self._start_s, cpu_s - self._start_cpu_s
            if wait_s is not None and self._start_wait_s is not None:
                self._wait_s = wait_s - self._start_wait_s
            lag.stop()
            gc.set_threshold(*thresholds)
            gc.callbacks.remove(self._on_gc)

    def facts(self) -> ClientFacts:
        """None for what a stage too short to measure cannot tell."""
        lag, wall_s = sorted(self._lag_s), self._wall_s
        p50_s, p99_s, max_s = stats.percentile(lag, 0.5), stats.percentile(lag, 0.99), max(lag, default=None)
        return ClientFacts(
            cpu_share=self._cpu_s / wall_s if wall_s else None,
            loop_lag_p50_s=p50_s,  # a loop serves its descriptors and its timers in one pass
            loop_lag_p99_s=p99_s,
            loop_lag_max_s=max_s,
            read_lag_p50_s=p50_s if self._of_reads else None,
            read_lag_p99_s=p99_s if self._of_reads else None,
            read_lag_max_s=max_s if self._of_reads else None,
            send_late_p99_s=stats.percentile(sorted(self.late_s), 0.99),
            gc_pause_max_s=self._pause_max_s,
            runq_wait_share=self._wait_s / wall_s if wall_s and self._wait_s is not None else None,
            redialled=self.redialled,
        )

    def _on_gc(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._pause_start_s = time.perf_counter()
        elif self._pause_start_s:
            self._pause_max_s = max(self._pause_max_s, time.perf_counter() - self._pause_start_s)


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Exempt everything alive now from garbage collection."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _readings() -> tuple[float, float, float | None]:
    """(wall, CPU, run-queue wait) of this thread in seconds."""
    return time.perf_counter(), time.thread_time(), _runq_wait_s()


def _runq_wait_s() -> float | None:
    """Seconds this thread has been runnable without a CPU; None where the kernel does not tell."""
    try:
        fields = Path("/proc/thread-self/schedstat").read_text().split()
        return int(fields[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None
