"""Absolute instants are kept, by timerfd and without."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time

import pytest
import uvloop

from perfdoctor.loadgen.lag import PERIOD_NS, ReadLag, TimerLag
from perfdoctor.loadgen.pacer import Pacer
from perfdoctor.loadgen.timerfd import Timerfd


def pace(gaps_s: list[float], timerfd: bool, runner=uvloop.run) -> list[float]:
    """How late each of the instants was met, in seconds."""

    async def inside() -> list[float]:
        pacer, late_s = Pacer(asyncio.get_running_loop(), timerfd), []
        due_ns = time.perf_counter_ns()
        for gap_s in gaps_s:
            due_ns += int(gap_s * 1e9)
            while (now_ns := time.perf_counter_ns()) < due_ns:
                await pacer.until(due_ns)
            late_s.append((now_ns - due_ns) / 1e9)
        pacer.close()
        return late_s

    return runner(inside())


@pytest.mark.parametrize("timerfd", [True, False], ids=["timerfd", "loop timer"])
@pytest.mark.parametrize("runner", [uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])
def test_instants_between_milliseconds_are_met(timerfd, runner):
    """Every 2.3 ms: a relative sleep would be late by the loop's granularity, and drift. A busy machine gets
    more attempts."""
    for _ in range(20):
        late_s = statistics.median(pace([0.0023] * 40, timerfd, runner))
        if late_s < 0.0005:
            break

    assert 0 <= late_s < 0.0005


@pytest.mark.parametrize("timerfd", [True, False], ids=["timerfd", "loop timer"])
def test_what_is_over_is_met_at_once(timerfd):
    """A past instant, the far past of a clock that began long ago included."""
    assert 2 == len(pace([-1.0, -100.0], timerfd))


@pytest.mark.parametrize("timerfd", [True, False], ids=["timerfd", "loop timer"])
def test_a_wait_can_be_ended(timerfd):
    """By an answer that frees a slot."""

    async def inside() -> float:
        loop = asyncio.get_running_loop()
        pacer, start_s = Pacer(loop, timerfd), time.perf_counter()
        loop.call_later(0.02, pacer.wake)
        await pacer.until(time.perf_counter_ns() + 10**10)
        loop.call_later(0.02, pacer.wake)
        await pacer.until(None)
        pacer.close()
        return time.perf_counter() - start_s

    assert 0.03 < uvloop.run(inside()) < 2.0


def readings(meter, block_s: float) -> list[float]:
    """Lag readings around a stall of the loop."""
    from array import array

    lag_s = array("d")

    async def inside() -> None:
        found = meter(asyncio.get_running_loop(), lag_s)
        await asyncio.sleep(0.05)
        time.sleep(block_s)  # noqa: ASYNC251 - the stall that is to be seen
        await asyncio.sleep(0.02)
        found.stop()

    uvloop.run(inside())
    return sorted(lag_s)


def test_a_stall_is_seen_by_every_chunk_that_it_delayed():
    """200 ms hold up twenty chunks that came every 10 ms: the first 200 ms, the last hardly."""
    lag_s = readings(lambda loop, lag: ReadLag(loop, Timerfd(), lag), 0.2)

    delayed = [lag for lag in lag_s if lag > 0.005]
    expected = 0.2 / (PERIOD_NS / 1e9)
    assert expected - 3 <= len(delayed) <= expected + 6
    assert 0.18 < lag_s[-1] < 0.5
    assert all(0.007 < b - a < 0.0125 for a, b in itertools.pairwise(delayed))


def test_the_fallback_sees_the_stall_once():
    """A loop timer is late once, by what was left of the stall."""
    assert 0.18 < readings(TimerLag, 0.2)[-1] < 0.5
