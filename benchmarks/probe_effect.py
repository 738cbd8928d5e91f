"""What the probes cost the server they watch: its throughput with all probes on against off. Target: -1 %.

    python benchmarks/probe_effect.py [pairs]

The tiny local server is driven by 4 users in blocks of equal length, in the order on off off on (ABBA), so
that a drift of the machine falls on both sides alike. Each pair of neighbours gives one ratio of output
tokens per second; printed is the median ratio with its 95 % bootstrap interval. Other work on the machine
widens the interval; one that lies on both sides of the target settles nothing, and that is what is said.
"""

from __future__ import annotations

import sys
import time

import msgspec

from benchmarks._ratio import median_interval, verdict
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.local.launch import LocalServer, launch
from perfdoctor.model import Load, Phase, RequestRecord, Target
from perfdoctor.probes._sampler import Sampler, Subject

TARGET = 0.01
PAIRS = 12
USERS = 4
BLOCK_S = 3.0
OPENING_S = 1.0  # for the probes to open before a block starts; the same pause without them


async def drive(server: LocalServer, clock: Clock) -> float:
    """Output tokens per second that arrived within a block."""
    records: list[RequestRecord] = []
    target = Target(endpoint=server.url, served_name=server.facts.model)
    async with Driver(target, Load(concurrency=USERS), clock, records.append) as driver:
        phase: Phase = await driver.run_stage(Stage("steady", USERS, duration_s=BLOCK_S))
    end_s = phase.start_s + BLOCK_S
    return sum(at < end_s for record in records for at in record.token_at_s) / BLOCK_S


def block(server: LocalServer, clock: Clock, probes: bool) -> float:
    lines: list[bytes] = []
    subject = Subject(pid=server.pid, url=server.url, model_path=server.facts.model_path)
    sampler = Sampler(subject, clock, lambda s: lines.append(msgspec.json.encode(s)), lambda _: None, {})
    if probes:
        sampler.start()
    time.sleep(OPENING_S)
    try:
        return loop.run(drive(server, clock))
    finally:
        if probes:
            sampler.stop()


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    clock = Clock()
    server = launch("tiny", clock, lambda _: None, lambda _: None)
    try:
        for probes in (True, False):  # imports and first readings, not counted
            block(server, clock, probes)
        ratios = [pair(server, clock, on_first=number % 2 == 0) for number in range(pairs)]
    finally:
        server.stop()
    low, middle, high = median_interval(ratios)
    print(f"  throughput with probes / without: {middle:.4f}   95 % interval {low:.4f} to {high:.4f}")
    print(f"  {pairs} pairs of {BLOCK_S:.0f} s, from {min(ratios):.3f} to {max(ratios):.3f}")
    print(f"  target at most {TARGET:.0%} lost: {settled(low, high)}")


def settled(low: float, high: float) -> str:
    """Whether an interval of ratios lies on one side of the target."""
    if low < 1 - TARGET <= high:
        return "not settled, the interval lies on both sides"
    return verdict(low >= 1 - TARGET)


def pair(server: LocalServer, clock: Clock, on_first: bool) -> float:
    """Throughput with probes over throughput without, of two neighbouring blocks."""
    rates = {probes: block(server, clock, probes) for probes in (on_first, not on_first)}
    return rates[True] / rates[False]


if __name__ == "__main__":
    main()
