"""How a load begins and ends: hand-over, ramp-up, deadline, drain, error rate, conversations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from perfdoctor import latency
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Share, Stage
from perfdoctor.model import Load, RequestRecord, Target
from tests.servers import truth
from tests.servers.truth import Truth


@pytest.fixture(scope="module")
def server() -> Iterator[Truth]:
    with truth.serving("--ttft-ms", "10", "--gap-ms", "2", "--tokens", "3") as running:
        yield running


def drive(endpoint: str, load: Load, *stages: Stage, share: Share = Share()):  # noqa: B008
    """The records in order of their end, the phases, and the driver."""
    records: list[RequestRecord] = []

    async def inside():
        async with Driver(Target(endpoint=endpoint), load, Clock(), records.append, share=share) as driver:
            return [await driver.run_stage(stage) for stage in stages], driver

    phases, driver = loop.run(inside())
    return records, phases, driver


def of(records, phase):
    return [r for r in records if r.phase == phase]


def test_a_serial_server_with_ten_at_once(server):
    """Latencies of 1, 2, ... 10 units: the wait in its queue is the server's, and is counted."""
    unit_s = 0.03
    serial = server.timed(slots=1, ttft_ms=unit_s * 1e3, gap_ms=0, tokens=1)
    records, _, _ = drive(serial, Load(), Stage("steady", 10, requests=10))

    units = sorted(latency.e2e(r) / unit_s for r in records)
    assert all(n - 0.75 < unit < n + 1.5 for n, unit in enumerate(units, 1)), units


@pytest.mark.parametrize("share", [Share(0, 3), Share(1, 3), Share(2, 3)], ids=str)
def test_users_and_requests_are_divided_without_remainder(server, share):
    """10 requests of 4 users over 3 processes: 4, 3 and 3 of 2, 1 and 1."""
    records, _, _ = drive(server.url, Load(), Stage("steady", 4, requests=10), share=share)

    assert [4, 3, 3][share.worker] == len(records)
    at_once = max(sum(o.sent_s <= r.sent_s < o.end_s for o in records) for r in records)
    assert [2, 1, 1][share.worker] == at_once


def test_fewer_users_than_processes(server):
    """One user sends all of a baseline, in the first process."""
    stage = Stage("baseline", 1, requests=3)

    assert [3, 0] == [len(drive(server.url, Load(), stage, share=Share(k, 2))[0]) for k in (0, 1)]


def test_a_lead_hands_over_without_a_pause(server):
    """8 requests of warm-up, then 20 that count, and the server is never idle in between."""
    stage = Stage("steady", 4, requests=20, lead_requests=8)
    records, (phase,), driver = drive(server.url, Load(), stage)

    assert (8, 20) == (len(of(records, "warmup")), len(of(records, "steady")))
    still_open = [r for r in of(records, "warmup") if r.end_s > phase.start_s]
    assert 3 == len(still_open)
    assert all(r.sent_s >= phase.start_s for r in of(records, "steady"))
    assert 20 == driver.snapshot().done


def test_a_lead_by_time(server):
    """0.3 s of warm-up, then 0.3 s that count."""
    stage = Stage("steady", 4, duration_s=0.3, lead_s=0.3)
    records, (phase,), _ = drive(server.url, Load(), stage)

    warm, steady = of(records, "warmup"), of(records, "steady")
    begun_s = min(r.due_s for r in warm)
    assert 0.29 < phase.start_s - begun_s < 0.35
    assert 0.3 <= phase.end_s - phase.start_s < 1.0
    assert all(r.sent_s < phase.start_s + 0.005 for r in warm)
    assert all(phase.start_s <= r.sent_s < phase.start_s + 0.31 for r in steady)
    assert any(r.end_s > phase.start_s for r in warm)


@pytest.mark.parametrize("lead", [{"lead_requests": 5}, {"lead_s": 0.1}], ids=["requests", "time"])
def test_a_lead_of_an_open_loop(server, lead):
    """The first 0.1 s of a schedule of 50/s are 5 requests; 15 more count."""
    load = Load(arrival="constant", rate=50.0)
    records, (phase,), _ = drive(server.url, load, Stage("steady", None, requests=15, **lead))

    assert (5, 15) == (len(of(records, "warmup")), len(of(records, "steady")))
    assert 0.099 < phase.start_s - min(r.due_s for r in records) < 0.102
    assert min(r.due_s for r in of(records, "steady")) >= phase.start_s - 1e-6


def test_health_of_the_lead_is_left_out(server):
    """A client that was busy only while it warmed up measured well."""

    async def inside():
        async with Driver(Target(endpoint=server.url), Load(), Clock(), lambda _: None) as driver:
            task = asyncio.create_task(driver.run_stage(Stage("steady", 2, duration_s=0.4, lead_s=0.4)))
            await asyncio.sleep(0.1)
            time.sleep(0.15)  # noqa: ASYNC251 - the client is busy
            await task
            return driver.client_facts()

    facts = loop.run(inside())

    assert facts.read_lag_max_s < 0.1
    assert facts.send_late_p99_s < 0.1


def test_users_start_over_the_ramp_up(server):
    """5 users over half a second, one every 100 ms."""
    stage = Stage("steady", 5, duration_s=0.6, ramp_up_s=0.5)
    records, (phase,), _ = drive(server.timed(ttft_ms=700, tokens=1), Load(), stage)

    starts = sorted(r.sent_s - phase.start_s for r in records)
    assert 5 == len(starts)
    assert all(0 <= start - 0.1 * n < 0.05 for n, start in enumerate(starts))


def test_the_deadline_cancels_what_is_open(server):
    """Of the whole load: later stages send nothing, and the reader is told."""
    slow = server.timed(ttft_ms=9000, tokens=1)
    began_s = time.perf_counter()
    records, _, driver = drive(
        slow, Load(deadline_s=0.4), Stage("warmup", 1, requests=5), Stage("steady", 4, requests=50)
    )

    assert time.perf_counter() - began_s < 2.0
    assert [("cancelled", True)] == [(r.outcome, r.censored) for r in records]
    assert driver.over and "deadline of 0.4 s" in driver.notes[0]


def test_the_drain_limit_censors_an_open_loop(server):
    """What is open when the drain is over is kept with what it has."""
    slow = server.timed(ttft_ms=9000, tokens=1)
    load = Load(arrival="constant", rate=20.0, drain_s=0.1)
    records, (phase,), _ = drive(slow, load, Stage("steady", None, duration_s=0.3))

    assert [("cancelled", True)] * 6 == [(r.outcome, r.censored) for r in records]
    assert 0.4 <= phase.end_s - phase.start_s < 1.5


@pytest.mark.parametrize("stage", [Stage("steady", 4, requests=400), Stage("steady", None, requests=400)])
def test_a_crossed_error_rate_stops_the_load(server, stage):
    """Half of the answers are 429; 10 % were allowed. What is open may finish."""
    load = Load(arrival="closed" if stage.concurrency else "poisson", rate=200.0, max_error_rate=0.1)
    records, _, driver = drive(server.scripted("good+429"), load, stage)

    assert 20 <= len(records) < 100
    assert "more than the 10 % of --max-error-rate" in driver.stopped
    assert driver.over and driver.aborted is None
    assert not any(r.censored for r in records if r.outcome == "ok")


def test_an_error_rate_below_the_limit_does_not(server):
    """A third fails and half is allowed."""
    load = Load(max_error_rate=0.5)
    records, _, driver = drive(server.scripted("good+good+429"), load, Stage("steady", 4, requests=60))

    assert (60, None) == (len(records), driver.stopped)
