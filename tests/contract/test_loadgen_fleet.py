"""Several driver processes against a real server: one load, one answer, whatever happens to one of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from perfdoctor.clock import Clock
from perfdoctor.errors import Refused, UsageError, WorkerDied
from perfdoctor.loadgen import fleet_driver, fleet_size, loop, schedule
from perfdoctor.loadgen.fleet import Growing, make_driver
from perfdoctor.loadgen.fleet_driver import Fleet
from perfdoctor.loadgen.stage import Stage
from perfdoctor.model import Load, RequestRecord, Target
from tests.servers import truth
from tests.servers.truth import Truth

pytestmark = pytest.mark.server

SECRET = "sk-of-the-fleet-0123456789"


@pytest.fixture(scope="module")
def server() -> Iterator[Truth]:
    with truth.serving("--ttft-ms", "10", "--gap-ms", "5", "--tokens", "4") as running:
        yield running


def workers() -> list[psutil.Process]:
    """Of this process, in order of their start."""
    return [child for child in psutil.Process().children() if "perfdoctor.loadgen.worker" in child.cmdline()]


def drive(
    endpoint: str, load: Load, *stages: Stage, beside: Callable[[Fleet], Any] | None = None, count: int = 2
) -> tuple[list[RequestRecord], list[Any], Fleet]:
    """The records as they came, the phases, and the fleet. `beside` is called 0.5 s after the beginning."""
    records: list[RequestRecord] = []

    async def inside() -> tuple[list[Any], Fleet]:
        async with Fleet(Target(endpoint=endpoint), load, Clock(), records.append, SECRET, count) as fleet:
            if beside:
                asyncio.get_running_loop().call_later(0.5, beside, fleet)
            return [await fleet.run_stage(stage) for stage in stages], fleet

    phases, fleet = loop.run(inside())
    assert not workers()
    return records, phases, fleet


def test_a_closed_loop_is_divided_without_remainder(server: Truth):
    """21 requests of 4 users: as many, each with an id of its own, and never more than 4 at once."""
    warm, steady = Stage("warmup", 1, requests=2), Stage("steady", 4, requests=21)
    records, phases, fleet = drive(server.url, Load(), warm, steady)
    found = [r for r in records if r.phase == "steady"]

    assert 21 == len(found)
    assert 23 == len({r.id for r in records})
    assert 4 == max(sum(o.sent_s <= r.sent_s < o.end_s for o in found) for r in found)
    assert {0, 1} == {r.worker for r in found}
    assert all(phases[1].start_s <= r.sent_s and r.end_s <= phases[1].end_s for r in found)
    assert 2 == fleet.client_facts().workers
    assert 21 == fleet.snapshot().ok


def test_an_open_loop_is_one_schedule(server: Truth):
    """Both processes together send at the instants that one would: no generator of their own."""
    load = Load(arrival="poisson", rate=60.0, requests=40, seed=7)
    records, _, _ = drive(server.url, load, Stage("steady", None, requests=40))
    due_s = sorted(r.due_s for r in records)
    planned = schedule.plan(load, 0, 0.0).due_s

    assert 40 == len(due_s)
    offsets = [due - plan for due, plan in zip(due_s, planned, strict=True)]
    assert max(offsets) - min(offsets) < 1e-6
    first = sorted(records, key=lambda r: r.due_s)[:3]
    assert min(r.sent_s - r.due_s for r in first) < 0.02  # the schedule was there before the start
    assert {0, 1} == {r.worker for r in records}


def test_a_stop_lets_open_answers_finish(server: Truth):
    """A second one cancels them; both end all processes."""
    slow = server.timed(ttft_ms=10, gap_ms=20, tokens=60)
    once, _, _ = drive(slow, Load(), Stage("steady", 4), beside=Fleet.request_stop)

    def twice(fleet: Fleet) -> None:
        fleet.request_stop()
        fleet.request_stop()

    cut, _, _ = drive(slow, Load(), Stage("steady", 4), beside=twice)

    assert ["ok"] * 4 == [r.outcome for r in once]
    assert [True] * 4 == [r.censored for r in cut]


def test_a_stop_may_come_at_any_time(server: Truth):
    """While the processes start it ends the stage before it begins; when they are gone it does nothing."""
    defects: list[dict[str, Any]] = []
    records: list[RequestRecord] = []

    async def inside() -> None:
        running = asyncio.get_running_loop()
        running.set_exception_handler(lambda _, context: defects.append(context))
        fleet = Fleet(Target(endpoint=server.url), Load(), Clock(), records.append, None, 2)
        running.call_later(0.05, fleet.request_stop)
        async with fleet:
            await fleet.run_stage(Stage("steady", 4, requests=100))
        fleet.request_stop()
        await asyncio.sleep(0.01)

    loop.run(inside())

    assert ([], []) == (records, defects)


def test_a_server_that_refuses_is_given_up_as_by_one_process(server: Truth):
    """The parent judges, since a process alone sees too few answers."""
    records, _, fleet = drive(server.scripted("401"), Load(), Stage("steady", 4, duration_s=30.0))

    assert isinstance(fleet.aborted, Refused)
    assert len(records) < 20


def test_a_partly_broken_server_is_not_given_up(server: Truth):
    """Every second answer an error, so that one process may meet errors alone."""
    records, _, fleet = drive(server.scripted("401+good"), Load(), Stage("steady", 2, requests=10))

    assert fleet.aborted is None
    assert 10 == len(records)


def test_too_many_errors_stop_all_processes(server: Truth):
    """Counted over all of them."""
    load = Load(max_error_rate=0.1)
    records, _, fleet = drive(server.scripted("500+good"), load, Stage("steady", 4, requests=400))

    assert "more than the 10 %" in (fleet.stopped or "")
    assert len(records) < 400


def test_a_process_that_falls_silent_is_killed(server: Truth, monkeypatch: pytest.MonkeyPatch):
    """As a stopped one does: the run ends with the reason instead of hanging."""
    monkeypatch.setattr(fleet_driver, "SILENT_TICKS", 3)
    began_s = time.monotonic()
    records, _, fleet = drive(server.url, Load(), Stage("steady", 4), beside=lambda _: workers()[1].suspend())

    assert isinstance(fleet.aborted, WorkerDied)
    assert "driver process 2 of 2 was silent" in fleet.aborted.what
    assert {0, 1} == {r.worker for r in records}
    assert time.monotonic() - began_s < 10


def test_what_a_process_cannot_begin_is_raised_here():
    """A load that does not fit is the same error as in one process, and no process is left."""
    with pytest.raises(UsageError, match="local ports"):
        drive("http://127.0.0.1:9", Load(concurrency=1_000_000), Stage("steady", 1))

    assert not workers()


def test_the_secret_is_in_no_argument(server: Truth):
    """Arguments and environments are there for others to read."""
    seen: list[str] = []

    def look(_: Fleet) -> None:
        seen.extend(str((w.cmdline(), w.environ())) for w in workers())

    drive(server.url, Load(), Stage("steady", 2, duration_s=1.0), beside=look)

    assert 2 == len(seen)
    assert not [text for text in seen if SECRET in text]


def test_processes_are_added_when_the_pace_asks_for_them(server: Truth, monkeypatch: pytest.MonkeyPatch):
    """After a baseline in this process; their requests have ids and prompts of their own."""
    monkeypatch.setattr(fleet_size, "EVENTS_PER_S", 200)
    records: list[RequestRecord] = []

    async def inside() -> Growing:
        target, load = Target(endpoint=server.url), Load(concurrency=8)
        async with Growing(target, load, Clock(), records.append, SECRET, cores=3) as driver:
            await driver.run_stage(Stage("baseline", 1, requests=3))
            assert not workers()
            await driver.run_stage(Stage("steady", 8, requests=16))
        return driver

    driver = loop.run(inside())
    told = server.told()

    assert 2 == driver.client_facts().workers
    assert "2 driver processes" in driver.notes[0]
    assert list(range(1, 20)) == sorted(r.id for r in records)
    assert 19 == len({told[str(r.id)]["prompt"] for r in records})


def test_one_process_is_this_one(monkeypatch: pytest.MonkeyPatch):
    """Where two cores are all there is, and where one is asked for."""
    arguments = (Target(endpoint="http://127.0.0.1:9"), Load(), Clock(), print, None)
    monkeypatch.setattr(fleet_size, "cores", lambda: 2)
    assert "Driver" == type(make_driver(*arguments, None)).__name__
    monkeypatch.setattr(fleet_size, "cores", lambda: 8)

    capped = Load(arrival="poisson", rate=1.0, max_in_flight=1)
    assert "Driver" == type(make_driver(arguments[0], capped, *arguments[2:], 4)).__name__
    assert "Driver" == type(make_driver(*arguments, 1)).__name__
    assert "Growing" == type(make_driver(*arguments, None)).__name__
    assert "Fleet" == type(make_driver(*arguments, 2)).__name__
