"""The driver's instants against a server that knows when it sent what."""

from __future__ import annotations

import itertools

import pytest

from perfdoctor import latency, stats
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import Load, RequestRecord, Target
from tests.servers import truth

pytestmark = pytest.mark.alone

STREAMS = 64
TOKENS = 24
LIMIT_S = 0.005
ATTEMPTS = 5


def drive(endpoint: str, clock: Clock) -> list[RequestRecord]:
    records: list[RequestRecord] = []

    async def conduct() -> None:
        load = Load(concurrency=STREAMS)
        async with Driver(Target(endpoint=endpoint), load, clock, records.append) as driver:
            await driver.run_stage(Stage("warmup", STREAMS, requests=STREAMS))
            await driver.run_stage(Stage("steady", STREAMS, requests=2 * STREAMS))

    loop.run(conduct())
    return [record for record in records if record.phase == "steady"]


def test_ttft_and_gaps_are_within_5_ms_of_the_truth_at_64_streams():
    """Server and client share CLOCK_MONOTONIC, so the truth is each token's own stamp of departure.

    Judged by the median and the 90th percentile of the error, not by its maximum: on a machine whose cores
    are shared, the kernel may keep either process off the CPU for longer than 5 ms at any moment, and then
    the stamps differ though both are right. A client that queues its own reads or sends is late for most
    tokens, not for a few, and fails this test. Five attempts, since a neighbour's burst can cover all of one;
    a wrong stamp is wrong in every one.
    """
    seen: list[float | None] = []
    for _ in range(ATTEMPTS):
        ttft_errors, gap_errors = errors()
        seen = [stats.percentile(errors_s, p) for errors_s in (ttft_errors, gap_errors) for p in (0.5, 0.9)]
        if all(error_s is not None and error_s < LIMIT_S for error_s in seen):
            break
    else:
        raise AssertionError(f"TTFT and gap errors (p50, p90 each) are {seen} s")

    assert 2 * STREAMS == len(ttft_errors)
    assert 2 * STREAMS * (TOKENS - 1) == len(gap_errors)


def errors() -> tuple[list[float], list[float]]:
    """Absolute errors, in seconds, of every TTFT and every gap of one run."""
    clock = Clock()
    with truth.serving("--ttft-ms", "60", "--gap-ms", "20", "--tokens", str(TOKENS)) as server:
        records = drive(server.url, clock)
        told = server.told()
    ttft_errors, gap_errors = [], []
    for record in records:
        left_ns = told[str(record.id)]["sent_ns"]
        true_ttft_s = (left_ns[0] - told[str(record.id)]["received_ns"]) / 1e9
        true_gaps_s = [(b - a) / 1e9 for a, b in itertools.pairwise(left_ns)]
        ttft_errors.append(abs((latency.ttft(record) or 0.0) - true_ttft_s))
        gap_errors += [abs(seen - true) for seen, true in zip(latency.gaps(record), true_gaps_s, strict=True)]
    return ttft_errors, gap_errors


def test_no_token_is_stamped_before_it_left():
    """Clocks of both processes are one: an arrival before the departure would be a wrong stamp."""
    clock = Clock()
    with truth.serving("--ttft-ms", "5", "--gap-ms", "2", "--tokens", "8") as server:
        records = drive(server.url, clock)
        told = server.told()

    for record in records:
        left_s = [clock.at(stamp) for stamp in told[str(record.id)]["sent_ns"]]
        assert all(left <= seen for left, seen in zip(left_s, record.token_at_s, strict=True))
        assert record.sent_s <= clock.at(told[str(record.id)]["received_ns"])
