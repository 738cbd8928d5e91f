"""Whether a rate was served, from queues small enough to be run here."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

import pytest

from perfdoctor.model import RequestRecord
from perfdoctor.sweep._backlog import LEAST, served_share

SEEDS = range(10)


def queue(
    rate: float, servers: int, service: Callable[[random.Random], float], seed: int, seconds: float = 10.0
) -> list[RequestRecord]:
    """Poisson arrivals before so many servers that are free at first, first come first served."""
    rng, at_s, found = random.Random(seed), 0.0, list[RequestRecord]()
    free_s = [0.0] * servers
    while (at_s := at_s + rng.expovariate(rate)) < seconds:
        end_s = max(at_s, heapq.heappop(free_s)) + service(rng)
        heapq.heappush(free_s, end_s)
        found.append(record(at_s, end_s))
    return found


def record(due_s: float, end_s: float | None, outcome: str = "ok", **changes: bool) -> RequestRecord:
    return RequestRecord(id=1, phase="steady", due_s=due_s, end_s=end_s, outcome=outcome, **changes)


def seconds(mean_s: float, cv: float = 0.0) -> Callable[[random.Random], float]:
    return lambda rng: max(0.0, rng.gauss(mean_s, cv * mean_s))


@pytest.mark.parametrize("took_s", [0.1, 4.4, 20.0])
def test_slow_answers_are_no_backlog(took_s: float):
    """Servers without end, at 4 a second: all is served, however much is open when the load ends."""
    shares = [served_share(queue(4.0, 1000, seconds(took_s, 0.2), seed)) for seed in SEEDS]

    assert len(SEEDS) - 2 <= shares.count(1.0)


@pytest.mark.parametrize(("rate", "share"), [(6.0, 4 / 6), (8.0, 0.5), (40.0, 0.1)])
def test_what_is_not_served_piles_up(rate: float, share: float):
    """A server of a quarter second: 4 of so many a second."""
    found = served_share([record(i / rate, (i + 1) / 4) for i in range(int(10 * rate))])

    assert share == pytest.approx(found, rel=0.01)


def test_what_was_cut_off_counts_until_then():
    """Four a second of twelve were served, and what is open after 15 s had waited until then: not hidden."""
    served = [record(i / 12, (i + 1) / 4) for i in range(60)]
    cut_off = [record(i / 12, 15.0, "cancelled", censored=True) for i in range(60, 120)]

    assert 0.7 > (served_share([*served, *cut_off]) or 1.0)


def test_nearly_all_of_a_queue_below_its_limit_is_served():
    """Half the load that four servers can take, and a fifth more than that: on most seeds told apart."""
    below = [served_share(queue(40.0, 4, seconds(0.05, 0.3), seed)) or 0.0 for seed in SEEDS]
    above = [served_share(queue(96.0, 4, seconds(0.05, 0.3), seed)) or 1.0 for seed in SEEDS]

    assert len(SEEDS) - 1 <= sum(share > 0.9 for share in below)
    assert len(SEEDS) - 1 <= sum(share < 0.9 for share in above)


def test_few_requests_tell_nothing():
    """One less than are needed, a failure beside them, and one that was never sent."""
    few = [record(float(i), i + 1.0) for i in range(LEAST - 1)]

    assert served_share([*few, record(50.0, 51.0, "http_500"), record(60.0, None, "not_sent")]) is None
    assert 1.0 == served_share([*few, record(50.0, 51.0)])
