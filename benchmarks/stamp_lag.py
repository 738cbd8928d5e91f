"""How late the client stamps streamed events: its stamps against those of the server that sent them.

    python -m benchmarks.stamp_lag [--streams N] [--rate TOKENS_PER_S] [--seconds S] [--rounds R]

The server of `perfdoctor calibrate` streams at an exact pace in a process of its own and writes down when it
sent each event; both sides read CLOCK_MONOTONIC. The client is kept on one core. The two transports take
turns; the best round of each counts, since a neighbour on the core can only make a round worse. A lag holds
everything between the two stamps: the server's write, the kernel, the wait for the client's event loop.
"""

from __future__ import annotations

import argparse
import os
from typing import Literal

from benchmarks._ratio import verdict
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.calibrate._level import compare, serving
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import CalibrationLevel, ClientFacts, Load, Prompts, RequestRecord, Target, Wire

TARGET_S = 0.005  # p99 of our own transport
TRANSPORTS: tuple[Literal["raw", "aiohttp"], ...] = ("raw", "aiohttp")


def measure(transport: Literal["raw", "aiohttp"], args: argparse.Namespace) -> CalibrationLevel:
    """One round; the same comparison as a calibration makes."""
    tokens = round(args.rate * args.seconds)
    load = Load(
        concurrency=args.streams,
        requests=args.streams,
        prompts=Prompts(input_tokens=8, output_tokens=tokens),
        timeout_s=args.seconds * 4 + 30,
    )
    clock, records = Clock(), list[RequestRecord]()

    async def conduct(url: str) -> ClientFacts:
        target = Target(endpoint=url, served_name="paced", wire=Wire(transport=transport))
        async with Driver(target, load, clock, records.append) as driver:
            await driver.run_stage(Stage("steady", args.streams, requests=args.streams))
            return driver.client_facts()

    cores = os.sched_getaffinity(0)
    with serving(args.rate) as server:
        os.sched_setaffinity(0, {max(cores)})
        try:
            facts = loop.run(conduct(server.url))
        finally:
            os.sched_setaffinity(0, cores)
        return compare(args.streams, args.rate, records, server.told(), clock, facts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    found: dict[str, list[CalibrationLevel]] = {name: [] for name in TRANSPORTS}
    for number in range(args.rounds):
        for name in TRANSPORTS if number % 2 else reversed(TRANSPORTS):
            found[name].append(measure(name, args))
    print(f"{args.streams} streams x {args.rate:g} tokens/s, {args.rounds} rounds of {args.seconds:g} s each")
    for name, levels in found.items():
        best = min(levels, key=lambda level: level.lag_p99_s or float("inf"))
        rounds = ", ".join(_ms(level.lag_p99_s) for level in levels)
        lags = f"p50 {_ms(best.lag_p50_s)}  p99 {_ms(best.lag_p99_s)}  max {_ms(best.lag_max_s)}"
        print(f"  {name:<8} lag {lags}   (p99 of the rounds: {rounds})")
        share = f"{best.cpu_share or 0:.0%} of a core"
        print(f"           {best.events:,} events, {best.lost} lost; {share}; "
              f"the server itself was {_ms(best.server_late_p99_s)} late at p99")  # fmt: skip
    raw_s = min(level.lag_p99_s or float("inf") for level in found["raw"])
    print(f"  target at most {TARGET_S * 1e3:g} ms at p99 over raw: {verdict(raw_s <= TARGET_S)}")


def _ms(value_s: float | None) -> str:
    return "unknown" if value_s is None else f"{value_s * 1e3:.2f} ms"


if __name__ == "__main__":
    main()
