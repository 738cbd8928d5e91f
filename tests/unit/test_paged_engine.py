"""The engine of the benchmark keeps its promises: nothing is lost, blocks come back, too few cost work."""

from __future__ import annotations

import threading
import time

import pytest

from scenarios.workloads.paged_engine import BLOCK, Engine, Sequence

WANTED, USERS = 40, 6


def served(blocks: int) -> tuple[Engine, list[int]]:
    """Six requests of 24 prompt tokens at once, and how many tokens each got."""
    engine, got, ended = Engine(blocks, 32), [0] * USERS, threading.Semaphore(0)

    def emit_to(user: int):
        def emit(last: bool) -> None:
            got[user] += 1
            if last:
                ended.release()

        return emit

    threading.Thread(target=engine.run, daemon=True).start()
    for user in range(USERS):
        engine.submit(Sequence(24, WANTED, emit_to(user), time.monotonic()))
    for _ in range(USERS):
        assert ended.acquire(timeout=30)
    return engine, got


@pytest.mark.parametrize(("blocks", "preempts"), [(USERS * (64 // BLOCK + 1), False), (7, True)])
def test_everybody_gets_all_tokens_whatever_the_room(blocks: int, preempts: bool) -> None:
    """With room for all nobody is thrown out; with less than for two they are, and none loses a token."""
    engine, got = served(blocks)

    deadline = time.monotonic() + 5
    while engine.free < blocks and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [WANTED] * USERS == got
    assert blocks == engine.free
    assert preempts is (engine.counters.preemptions > 0)
    assert (USERS, USERS * WANTED) == (engine.counters.finished, engine.counters.output_tokens)
