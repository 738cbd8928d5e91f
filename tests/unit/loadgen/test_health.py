"""The client's own health, and the collector left as it was found."""

import asyncio
import gc
import time

import pytest

from perfdoctor.loadgen import health
from perfdoctor.loadgen.health import Health, frozen_heap
from perfdoctor.loadgen.time_limit import TimeLimits


async def watch(body):
    found = Health()
    with found.watching():
        await body()
    return found.facts()


async def block_for(seconds):
    await asyncio.sleep(0.03)
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        pass
    await asyncio.sleep(0.001)  # the late timer is noticed when the loop runs again


def test_a_blocked_loop_shows_as_lag_and_cpu():
    """80 ms of computing in the loop delay every read by up to that; a busy machine gets more attempts."""
    for _ in range(5):
        facts = asyncio.run(watch(lambda: block_for(0.08)))
        if facts.cpu_share >= 0.3:
            break

    assert facts.loop_lag_max_s >= 0.05
    assert 0.3 <= facts.cpu_share <= 1.05


def test_lag_is_never_negative():
    """A timer may be early by its resolution."""
    facts = asyncio.run(watch(lambda: asyncio.sleep(0.1)))

    assert 0 <= facts.loop_lag_p50_s <= facts.loop_lag_p99_s <= facts.loop_lag_max_s


def test_a_stage_without_a_tick_has_no_lag():
    """Missing, not zero."""
    facts = asyncio.run(watch(lambda: asyncio.sleep(0)))

    assert facts.loop_lag_p99_s is None and facts.send_late_p99_s is None


def test_run_queue_wait_is_missing_where_the_kernel_does_not_tell(monkeypatch):
    """No /proc, no number."""
    monkeypatch.setattr(health, "_runq_wait_s", lambda: None)

    assert asyncio.run(watch(lambda: asyncio.sleep(0))).runq_wait_share is None


def test_full_collections_are_off_only_during_a_stage():
    """And the callbacks are gone afterwards, also when the stage breaks."""
    before, callbacks = gc.get_threshold(), list(gc.callbacks)

    async def look():
        assert gc.get_threshold()[:2] == before[:2]
        assert gc.get_threshold()[2] > 10**5
        raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(watch(look))

    assert (before, callbacks) == (gc.get_threshold(), list(gc.callbacks))


def test_collections_of_a_stage_are_timed():
    """A pause of the collector is a pause of every stream."""

    async def collect():
        gc.collect()

    assert asyncio.run(watch(collect)).gc_pause_max_s > 0


def test_the_heap_is_frozen_only_inside():
    """Other users of this process keep their collector."""
    with frozen_heap():
        assert gc.get_freeze_count() > 0

    assert 0 == gc.get_freeze_count()


def test_a_time_limit_ends_its_block():
    """As a timeout, not as a cancellation."""

    async def slow():
        with TimeLimits(0.01).start():
            await asyncio.sleep(5)

    with pytest.raises(asyncio.TimeoutError, match=r"within 0\.01 s"):
        asyncio.run(slow())


def test_a_time_limit_in_time_changes_nothing():
    """Neither the result nor a cancellation from elsewhere."""

    async def cancelled():
        with TimeLimits(5).start():
            await asyncio.sleep(5)

    async def outer():
        with TimeLimits(5).start():
            await asyncio.sleep(0)
        task = asyncio.create_task(cancelled())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(outer())
