"""What a run says of its own error, against a server that stamps what it sends."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import jsonschema
import pytest

from perfdoctor import trust
from perfdoctor.calibration import conclude
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.calibrate import _level
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import CalibrationLevel, ClientFacts, Load, Prompts, RequestRecord, Target, Trust
from perfdoctor.reports import _schemas
from perfdoctor.reports import json as reports_json

pytestmark = [pytest.mark.server, pytest.mark.alone]
STREAMS, TOKENS_PER_S, TOKENS = 32, 50.0, 50
ATTEMPTS = 5  # other work on this machine may delay one end for a whole attempt
SLACK_S = 0.005  # by which it may be too careful
LOOPBACK_S = 0.001  # from the server's write to the client's socket: part of a lag, and no client's error


def measure(hog_s: float = 0.0, every_s: float = 0.1) -> tuple[CalibrationLevel, Trust]:
    """A level, and the verdict on it, while the event loop is held for `hog_s` now and then."""
    clock, records = Clock(), list[RequestRecord]()
    prompts = Prompts(input_tokens=8, output_tokens=TOKENS)
    load = Load(concurrency=STREAMS, requests=STREAMS, prompts=prompts)

    def hold() -> None:
        ends_s = time.perf_counter() + hog_s
        while time.perf_counter() < ends_s:
            pass
        asyncio.get_running_loop().call_later(every_s, hold)

    async def conduct(url: str) -> ClientFacts:
        async with Driver(Target(endpoint=url, served_name="m"), load, clock, records.append) as driver:
            if hog_s:
                hold()
            await driver.run_stage(Stage("steady", STREAMS, requests=STREAMS))
            return driver.client_facts()

    with _level.serving(TOKENS_PER_S) as server:
        facts = loop.run(conduct(server.url))
        level = _level.compare(STREAMS, TOKENS_PER_S, records, server.told(), clock, facts)
    return level, trust.judge(facts, records)


def test_the_error_shown_bounds_the_actual_one() -> None:
    """`± x ms` of a client that is well: 99 of 100 stamps are no later than that behind the server's, and it
    is no empty promise of seconds either."""
    seen = []
    for _ in range(ATTEMPTS):
        level, judged = measure()
        seen.append((judged, level.lag_p99_s))
        assert (STREAMS * TOKENS, 0) == (level.events, level.lost)
        assert judged.error_s is not None and level.lag_p99_s is not None
        if -LOOPBACK_S <= judged.error_s - level.lag_p99_s <= SLACK_S and judged.status != "invalid":
            return
    raise AssertionError(seen)


@pytest.mark.parametrize(("hog_s", "every_s"), [(0.03, 0.07), (0.15, 0.05)])
def test_a_client_that_is_held_up_says_so(hog_s: float, every_s: float) -> None:
    """By about as much as its stamps are late in truth; no machine is so noisy that it gets away with it."""
    level, judged = measure(hog_s, every_s)

    assert judged.status in ("degraded", "invalid")
    assert any("read lag" in reason or "of a core" in reason for reason in judged.reasons)
    assert judged.error_s is not None and level.lag_p99_s is not None
    assert level.lag_p99_s == pytest.approx(judged.error_s, rel=0.5)
    assert 0.5 * hog_s < judged.error_s


def test_a_thread_that_holds_the_interpreter_is_the_clients_limit() -> None:
    """The stamps come late by its turns of 5 ms; the level is the client's limit, and the run says so."""
    over = threading.Event()
    hog = threading.Thread(target=lambda: spin(over), daemon=True)
    hog.start()
    try:
        seen = [measure()]
        while seen[-1][0].limit == "server" and len(seen) < ATTEMPTS:  # by other work on this machine
            seen.append(measure())
    finally:
        over.set()
        hog.join()
    level, judged = seen[-1]

    assert "client" == level.limit, seen
    assert judged.status in ("degraded", "invalid"), judged


def spin(over: threading.Event) -> None:
    while not over.is_set():
        pass


def test_what_is_not_paced_shows_who_is_busier() -> None:
    """As fast as both can: nothing is lost on the way, and more comes than of any paced level here. What is
    made of it is the published JSON."""
    level = _level.drive(4, None, 1000)
    found = conclude([_level.drive(2, TOKENS_PER_S, 10), level], 2, "raw")

    assert (4000, 0) == (level.events, level.lost)
    assert level.limit in ("client", "server")
    assert 2000 < (found.peak_events_per_s or 0)
    jsonschema.validate(
        json.loads(reports_json.encode(found)), json.loads(_schemas.generate()["calibration.schema.json"])
    )
