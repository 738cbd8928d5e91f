"""The open loop against a real server: its schedule, its cap, and a stall by both clocks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from perfdoctor import latency, stats
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop, schedule
from perfdoctor.loadgen.driver import Driver, Share, Stage
from perfdoctor.model import Load, RequestRecord, Target
from tests.servers import truth
from tests.servers.truth import Truth


@pytest.fixture(scope="module")
def server() -> Iterator[Truth]:
    with truth.serving("--ttft-ms", "10", "--gap-ms", "2", "--tokens", "3") as running:
        yield running


def drive(endpoint: str, load: Load, stage: Stage, beside=None, share: Share = Share()):  # noqa: B008
    """The records in order of their due instants, the phase, and the driver."""
    records: list[RequestRecord] = []

    async def inside():
        async with Driver(Target(endpoint=endpoint), load, Clock(), records.append, share=share) as driver:
            task = asyncio.create_task(driver.run_stage(stage))
            if beside:
                await beside(driver)
            return await task, driver

    phase, driver = loop.run(inside())
    return sorted(records, key=lambda r: r.due_s), phase, driver


def test_requests_are_sent_by_the_schedule(server):
    """Each at the instant that `due_times` gives it, whatever the answers do."""
    load = Load(arrival="poisson", rate=100.0, requests=60, seed=3)
    records, phase, _ = drive(server.url, load, Stage("steady", None, requests=60))

    expected = [phase.start_s + due_s for due_s in schedule.due_times(load)]
    assert expected == pytest.approx([r.due_s for r in records], abs=1e-6)
    assert 0 <= min(r.sent_s - r.due_s for r in records)
    assert stats.percentile([r.sent_s - r.due_s for r in records], 0.5) < 0.005
    assert (None, "steady") == (phase.concurrency, phase.name)


def test_two_drivers_send_one_schedule(server):
    """Each its slice, with ids and prompts that do not collide."""
    load = Load(arrival="poisson", rate=100.0, requests=21)
    halves = [drive(server.url, load, Stage("steady", None, requests=21), share=Share(k, 2)) for k in (0, 1)]

    assert [11, 10] == [len(records) for records, _, _ in halves]
    assert list(range(1, 22)) == sorted(r.id for records, _, _ in halves for r in records)
    offsets = sorted(r.due_s - phase.start_s for records, phase, _ in halves for r in records)
    assert schedule.due_times(load).tolist() == pytest.approx(offsets, abs=1e-6)


@pytest.mark.slow
def test_a_stalled_server_is_charged_by_the_schedule():
    """SIGSTOP for a second, one request open at most: by service time one request in fifty was slow.

    By the schedule twenty were, as a user would have felt it (coordinated omission).
    """

    async def stall(driver: Driver) -> None:
        await asyncio.sleep(0.5)
        os.kill(server.pid, signal.SIGSTOP)
        await asyncio.sleep(1.0)
        os.kill(server.pid, signal.SIGCONT)

    load = Load(arrival="constant", rate=20.0, max_in_flight=1)
    with truth.serving("--ttft-ms", "5", "--gap-ms", "1", "--tokens", "2") as server:
        records, _, _ = drive(server.url, load, Stage("steady", None, requests=50), stall)

    assert ["ok"] * 50 == [r.outcome for r in records]
    service = [latency.e2e(r) for r in records]
    scheduled = [latency.e2e_from_schedule(r) for r in records]
    assert stats.percentile(service, 0.9) < 0.1
    assert 1 == sum(s > 0.5 for s in service)
    # 20 were due in that second, and waited 1.0, 0.95, ... 0.05 s
    assert 8 <= sum(s > 0.5 for s in scheduled) <= 14
    assert 0.9 < max(scheduled) < 1.6


@pytest.mark.slow
def test_a_stalled_server_without_a_cap():
    """Requests are sent on time into the stall, so both clocks agree."""

    async def stall(driver: Driver) -> None:
        await asyncio.sleep(0.3)
        os.kill(server.pid, signal.SIGSTOP)
        await asyncio.sleep(0.5)
        os.kill(server.pid, signal.SIGCONT)

    load = Load(arrival="constant", rate=40.0)
    with truth.serving("--ttft-ms", "5", "--gap-ms", "1", "--tokens", "2") as server:
        records, _, _ = drive(server.url, load, Stage("steady", None, requests=40), stall)

    late = [r.sent_s - r.due_s for r in records]
    assert stats.percentile(late, 0.9) < 0.05
    assert 5 <= sum(latency.e2e(r) > 0.25 for r in records) <= 14


def test_a_capped_request_waits_its_turn_and_says_so(server):
    """Poisson at 400/s into 4 slots of 15 ms, which hold 260/s: never more open, none skipped, in order."""
    load = Load(arrival="poisson", rate=400.0, max_in_flight=4)
    records, _, _ = drive(server.url, load, Stage("steady", None, requests=80))

    assert 80 == len(records)
    open_at_once = max(sum(o.sent_s <= r.sent_s < o.end_s for o in records) for r in records)
    assert 4 == open_at_once
    assert sorted(r.sent_s for r in records) == [r.sent_s for r in records]
    assert max(r.sent_s - r.due_s for r in records) > 0.03


def test_waiting_for_a_slot_is_not_the_clients_lateness(server):
    """The cap was asked for; the driver is judged by what it did once there was a slot."""
    load = Load(arrival="constant", rate=500.0, max_in_flight=2)
    records, _, driver = drive(server.url, load, Stage("steady", None, requests=60))

    assert max(r.sent_s - r.due_s for r in records) > 0.1
    assert driver.client_facts().send_late_p99_s < 0.05


def test_what_was_due_and_never_sent_is_recorded():
    """0.4 s at 50/s into one slot that is taken: 20 requests, one of them open, the others censored."""
    load = Load(arrival="constant", rate=50.0, max_in_flight=1, drain_s=0.1)
    with truth.serving("--ttft-ms", "9000") as server:
        records, _, _ = drive(server.url, load, Stage("steady", None, duration_s=0.4))

    assert ["cancelled", *["not_sent"] * 19] == [r.outcome for r in records]
    assert all(r.censored for r in records)
    assert [None] * 19 == [r.sent_s for r in records[1:]]
    assert [20] == [len({r.id for r in records})]


def test_a_stop_records_what_was_due_before_it(server):
    """Not what would have been due later."""

    async def stop(driver: Driver) -> None:
        await asyncio.sleep(0.3)
        driver.request_stop()

    slow = server.timed(ttft_ms=100, tokens=1)
    load = Load(arrival="constant", rate=20.0, max_in_flight=1)
    records, _, _ = drive(slow, load, Stage("steady", None, requests=1000), stop)

    assert 6 <= len(records) <= 8
    assert {"ok", "not_sent"} == {r.outcome for r in records}


def test_by_time_and_by_count(server):
    """Whichever comes first; what is open at the end of the time may finish."""
    load = Load(arrival="constant", rate=50.0)
    by_count, _, _ = drive(server.url, load, Stage("steady", None, requests=5, duration_s=9.0))
    by_time, phase, _ = drive(server.url, load, Stage("steady", None, requests=500, duration_s=0.3))

    assert (5, 15) == (len(by_count), len(by_time))
    assert {"ok"} == {r.outcome for r in by_time}
    assert 0.28 < phase.end_s - phase.start_s < 2.0


def test_a_ramp_is_sent_as_its_integral(server):
    """From 0 to 100/s in one second: 50 requests, a quarter of them in the first half."""
    load = Load(arrival="constant", ramp=((0.0, 0.0), (1.0, 100.0)))
    records, phase, _ = drive(server.url, load, Stage("steady", None, duration_s=1.0))

    assert 49 <= len(records) <= 51
    assert 12 <= sum(r.due_s - phase.start_s < 0.5 for r in records) <= 14


def test_an_answer_does_not_end_before_the_schedule_does(server):
    """A pause between two requests, with nothing open, is no end."""
    load = Load(arrival="constant", rate=5.0)
    records, _, _ = drive(server.url, load, Stage("steady", None, requests=3))

    assert 3 == len(records)
    assert 0.35 < records[-1].sent_s - records[0].sent_s < 0.8


def test_the_wall_clock_has_no_say(server, monkeypatch):
    """Stepped back by an hour in the middle: every instant is monotonic."""

    async def step(driver: Driver) -> None:
        await asyncio.sleep(0.1)
        monkeypatch.setattr(time, "time", lambda: 1e9)
        monkeypatch.setattr(time, "time_ns", lambda: 10**18)

    load = Load(arrival="constant", rate=50.0)
    records, phase, _ = drive(server.url, load, Stage("steady", None, requests=15), step)

    assert 15 == len(records)
    assert all(0 <= r.due_s - phase.start_s <= 0.281 for r in records)
    assert all(0 < latency.e2e(r) < 1.0 for r in records)


def test_a_replay_sends_each_prompt_at_its_instant(tmp_path):
    """Twice as fast, in the order of the trace, whatever the warm-up sent before; its end ends the stage."""
    trace = tmp_path / "trace.jsonl"
    rows = [
        {"at_s": 0.4, "prompt": "third"},
        {"at_s": 0, "prompt": "first"},
        {"at_s": 0.2, "prompt": "second"},
    ]
    trace.write_text("\n".join(json.dumps(row) for row in rows))
    load = Load(arrival="replay", replay=str(trace), replay_speed=2.0)
    records: list[RequestRecord] = []

    async def inside(url: str):
        async with Driver(Target(endpoint=url), load, Clock(), records.append) as driver:
            await driver.run_stage(Stage("warmup", 1, requests=2))
            return await driver.run_stage(Stage("steady", None)), driver.notes

    with truth.serving("--tokens", "1", "--ttft-ms", "5") as server:
        phase, notes = loop.run(inside(server.url))
        told = server.told()

    replayed = [r for r in records if r.phase == "steady"]
    assert [0.0, 0.1, 0.2] == pytest.approx([r.due_s - phase.start_s for r in replayed], abs=1e-6)
    said = [told[str(r.id)]["prompt"] for r in replayed]
    assert all(word in text for word, text in zip(("first", "second", "third"), said, strict=True))
    assert any("order" in note for note in notes), notes
