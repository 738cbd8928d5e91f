"""Stages: how many requests, for how long, and every way to stop early."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from perfdoctor.clock import Clock
from perfdoctor.errors import NotOpenai, ServerDied, TlsMismatch, Unreachable
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.loadgen.summary import summarise
from perfdoctor.model import Load, RequestRecord, RunFacts, Scenario, Target
from tests.servers import truth
from tests.servers._server import free_port
from tests.servers.truth import Truth


@pytest.fixture(scope="module")
def server() -> Iterator[Truth]:
    with truth.serving("--ttft-ms", "20", "--gap-ms", "5", "--tokens", "4") as running:
        yield running


def run(endpoint: str, conduct, load: Load | None = None):
    """The records, and what `conduct(driver)` returned."""
    records: list[RequestRecord] = []

    async def inside():
        async with Driver(Target(endpoint=endpoint), load or Load(), Clock(), records.append) as driver:
            return await conduct(driver)

    return records, loop.run(inside())


def test_a_stage_sends_exactly_its_requests(server):
    """From all users together, never more at once than there are users."""
    records, phase = run(server.url, lambda d: d.run_stage(Stage("steady", 4, requests=10)))

    assert 10 == len(records)
    assert sorted(r.id for r in records) == list(range(1, 11))
    assert ("steady", 4) == (phase.name, phase.concurrency)
    assert all(phase.start_s <= r.due_s and r.end_s <= phase.end_s for r in records)
    open_at_once = max(sum(o.sent_s <= r.sent_s < o.end_s for o in records) for r in records)
    assert 4 == open_at_once


def test_fewer_requests_than_users(server):
    """The other users have nothing to do."""
    records, _ = run(server.url, lambda d: d.run_stage(Stage("steady", 8, requests=3)))

    assert 3 == len(records)


def test_a_stage_ends_after_its_time_and_its_drain(server):
    """Nothing is sent after the time is over; what is open may finish."""
    records, phase = run(server.url, lambda d: d.run_stage(Stage("steady", 4, duration_s=0.4)))

    assert all(r.due_s <= phase.start_s + 0.45 for r in records)
    assert not any(r.censored for r in records)
    assert 0.4 <= phase.end_s - phase.start_s < 3.0


def test_what_outlives_the_drain_is_censored(server):
    """Recorded with the tokens so far, as cancelled: neither a success nor the server's failure."""
    slow = server.timed(ttft_ms=10, gap_ms=20, tokens=500)
    records, phase = run(slow, lambda d: d.run_stage(Stage("steady", 3, duration_s=0.3)), Load(drain_s=0.2))

    assert [("cancelled", True)] * 3 == [(r.outcome, r.censored) for r in records]
    assert all(5 < len(r.token_at_s) < 100 and r.token_source == "chunks" for r in records)
    assert phase.end_s - phase.start_s < 3.0


def test_a_stage_bounded_by_requests_waits_for_them(server):
    """The drain limit is for a time that is over, not for a slow server."""
    slow = server.timed(ttft_ms=300, gap_ms=1, tokens=2)
    records, _ = run(slow, lambda d: d.run_stage(Stage("steady", 2, requests=2)), Load(drain_s=0.05))

    assert ["ok", "ok"] == [r.outcome for r in records]


def stop_after(seconds: float, times: int, stage: Stage):
    async def conduct(driver: Driver):
        task = asyncio.create_task(driver.run_stage(stage))
        await asyncio.sleep(seconds)
        for _ in range(times):
            driver.request_stop()
        await task
        return await driver.run_stage(Stage("steady", 4, requests=5))

    return conduct


def test_first_stop_lets_open_requests_finish(server):
    """And no later stage sends anything."""
    records, last = run(server.timed(tokens=60), stop_after(0.1, 1, Stage("steady", 4, requests=400)))

    assert ["ok"] * 4 == [r.outcome for r in records]
    assert last.end_s - last.start_s < 0.1


def test_second_stop_cancels_at_once(server):
    """The records of open requests are written all the same."""
    slow = server.timed(gap_ms=50, tokens=1000)
    records, _ = run(slow, stop_after(0.3, 2, Stage("steady", 4, requests=400)))

    assert [("cancelled", True)] * 4 == [(r.outcome, r.censored) for r in records]
    assert all(r.end_s < 3 for r in records)


def test_a_cancelled_stage_leaves_no_request_behind(server):
    """Also when the caller gives up on the stage itself."""

    async def conduct(driver: Driver):
        task = asyncio.create_task(driver.run_stage(Stage("steady", 4, requests=400)))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled(), driver.snapshot()

    _, (cancelled, snapshot) = run(server.timed(tokens=1000), conduct)

    assert cancelled
    assert 0 == snapshot.in_flight


def test_snapshot_counts_while_it_runs(server):
    """What the live line shows."""

    async def conduct(driver: Driver):
        task = asyncio.create_task(driver.run_stage(Stage("steady", 3, requests=3)))
        await asyncio.sleep(0.4)
        during = driver.snapshot()
        await task
        return during, driver.snapshot()

    _, (during, after) = run(server.timed(gap_ms=20, tokens=40), conduct)

    assert (0, 3) == (during.done, during.in_flight)
    assert 0 < during.tokens < 120 == after.tokens
    assert (3, 3, 0, 0) == (after.done, after.ok, after.failed, after.in_flight)


def test_headers_and_tokens_of_a_stage(server):
    """The profile stage asks for something else than the load."""
    stage = Stage("profile", 1, requests=1, headers={"Authorization": "Bearer of-the-stage"}, output_tokens=7)
    records, _ = run(server.scripted("echoes-key"), lambda d: d.run_stage(stage))

    assert ("profile", 7) == (records[0].phase, records[0].asked_tokens)
    assert "of-the-stage" in records[0].error


def test_client_facts_are_those_of_the_steady_stage(server):
    """Its health decides whether the numbers stand, not that of the profile stage after it."""

    async def conduct(driver: Driver):
        await driver.run_stage(Stage("warmup", 1, requests=1))
        warm = driver.client_facts()
        await driver.run_stage(Stage("steady", 4, requests=20))
        steady = driver.client_facts()
        await driver.run_stage(Stage("profile", 1, requests=1))
        return warm, steady, driver.client_facts()

    _, (warm, steady, last) = run(server.url, conduct)

    assert warm != steady == last
    assert 0 < steady.cpu_share < 1
    assert steady.send_late_p99_s is not None and steady.loop_lag_p99_s is not None


def test_every_user_asks_something_else():
    """Prefix caches must not help: the server sees a different prompt in each request."""
    with truth.serving("--tokens", "1", "--ttft-ms", "1") as server:
        run(server.url, lambda d: d.run_stage(Stage("steady", 4, requests=12)))
        told = server.told()

    assert 12 == len({told[key]["prompt"] for key in told})


def test_a_closed_port_is_unreachable():
    """Three connects, then the run is given up."""
    records, aborted = run(f"http://127.0.0.1:{free_port()}", give_up)

    assert type(aborted) is Unreachable
    assert ["connect"] * 3 == [r.outcome for r in records]


def test_tls_to_a_plain_port(server):
    """https where only http is spoken."""
    records, aborted = run(server.url.replace("http:", "https:"), give_up)

    assert type(aborted) is TlsMismatch
    assert {"connect"} == {r.outcome for r in records}


@pytest.mark.parametrize("answer", [b"\x15\x03\x03\x00\x02\x02\x46", b""], ids=["alert", "silence"])
def test_plain_http_to_a_tls_port(server, answer):
    """A TLS server answers with an alert, or just closes; both lead to the question about TLS."""
    endpoint = server.put("tls", [answer, "close"])

    _, aborted = run(endpoint, give_up)

    assert type(aborted) is (TlsMismatch if answer else NotOpenai)
    assert "https" in aborted.do


async def give_up(driver: Driver):
    await driver.run_stage(Stage("steady", 1, requests=100))
    return driver.aborted


def test_a_server_that_dies_is_noticed():
    """Killed in the middle: what was open fails, the next connects are refused, the run ends."""

    async def conduct(driver: Driver):
        task = asyncio.create_task(driver.run_stage(Stage("steady", 4, duration_s=60)))
        await asyncio.sleep(0.5)
        os.kill(server.pid, signal.SIGKILL)
        await task
        return driver.aborted

    with truth.serving("--ttft-ms", "5", "--gap-ms", "5", "--tokens", "10") as server:
        records, aborted = run(server.url, conduct)

    assert type(aborted) is ServerDied
    outcomes = [r.outcome for r in records]
    assert outcomes.count("ok") >= 4
    assert 5 <= outcomes.count("connect") <= 12
    assert set(outcomes) <= {"ok", "connect", "truncated", "reset", "cancelled"}


def test_a_server_that_exits_in_a_stream(server):
    """The one request it had is truncated, and then nothing answers."""
    with truth.serving() as dying:
        records, aborted = run(dying.scripted("exit"), give_up)

    assert ["truncated", *["connect"] * 5] == [r.outcome for r in records]
    assert type(aborted) is ServerDied


def test_some_refusals_do_not_end_the_run(server):
    """A server over its limit answers some; all of them are counted."""

    async def conduct(driver: Driver):
        await driver.run_stage(Stage("warmup", 1, requests=1))
        server.put("limited", truth.SCRIPTS["429"])
        await driver.run_stage(Stage("steady", 2, requests=12))
        return driver.aborted

    server.put("limited", truth.SCRIPTS["good"])
    records, aborted = run(server.scripted("limited"), conduct)

    assert aborted is None
    assert 12 == sum(r.outcome == "http_429" for r in records)


def test_rates_match_the_servers_pace(server):
    """4 users, 40 tokens every 5 ms after 20 ms: about 40/0.215 s each, never more."""
    endpoint = server.timed(ttft_ms=20, gap_ms=5, tokens=40)
    records, _ = run(endpoint, lambda d: d.run_stage(Stage("steady", 4, requests=24)))

    facts = RunFacts(scenario=Scenario(load=Load(concurrency=4)))
    summary = summarise(facts, "complete", records)
    ceiling = 4 * 40 / 0.215
    assert 0.5 * ceiling < summary.rates.output_tokens_per_s <= 1.02 * ceiling
    assert 24 * 40 == summary.tokens.output
    assert 3.5 < summary.rates.in_flight_mean <= 4.0
