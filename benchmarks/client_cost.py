"""CPU that the client spends on one streamed event: the driver against others, interleaved.

The loops read the same paced streams from a server in another process, in turns, round after round:

    driver        perfdoctor's whole path: stamps, event-stream parser, typed JSON, records, health checks
    over aiohttp  the same over the fallback transport
    bare          aiohttp `iter_any`; counts `data:` in each read and keeps nothing
    bare + json   the same, and decodes every event with msgspec into dicts
    vllm bench    the request function of `vllm bench serve`, with the session that it makes; left out, with
                  the reason, where its wheel cannot be had

All run on uvloop. The others start their users as far apart as the driver does: streams that start together
also speak together, and a loop that wakes once for many events looks cheaper than it is.

Printed: thread CPU per event in microseconds while the streams run (requests and records included, making
the session is not), median of the rounds, and its ratio to each bare loop. The ratio is the result; absolute
times vary with the machine and its neighbours.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Literal

import aiohttp
import msgspec

from benchmarks import _vllm
from benchmarks._ratio import median_interval, verdict
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.closed_loop import STAGGER_S
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import Load, RequestRecord, Target, Wire
from tests.servers import truth

TARGETS = {"over aiohttp": 0.65, "vllm bench": 0.6}  # the driver's ratio to each
Transport = Literal["raw", "aiohttp"]
EXTRA_EVENTS = 3  # of each stream beside its tokens: role, finish with usage, [DONE]
BODY = msgspec.json.encode({
    "model": truth.MODEL, "messages": [{"role": "user", "content": "word " * 48}], "stream": True,
    "stream_options": {"include_usage": True}, "max_tokens": 48,
})  # fmt: skip


async def drive(url: str, streams: int, transport: Transport = "raw") -> tuple[int, float]:
    """perfdoctor's driver."""
    records: list[RequestRecord] = []
    target = Target(endpoint=url, wire=Wire(transport=transport))
    async with Driver(target, Load(concurrency=streams), Clock(), records.append) as driver:
        start_s = time.thread_time()
        await driver.run_stage(Stage("steady", streams, requests=streams))
        cpu_s = time.thread_time() - start_s
    assert all(record.outcome == "ok" for record in records), records[0]
    return sum(len(record.token_at_s) + EXTRA_EVENTS for record in records), cpu_s


async def read_bare(response: aiohttp.ClientResponse) -> int:
    """The smallest aiohttp loop there is."""
    events = 0
    async for block in response.content.iter_any():
        events += block.count(b"data:")
    return events


async def read_json(response: aiohttp.ClientResponse) -> int:
    """The bare loop, with every event decoded: what any client that looks at tokens must do at least."""
    events = 0
    async for block in response.content.iter_any():
        for event in block.split(b"\n\n"):
            events += event.startswith(b"data:")
            if event.startswith(b"data: {"):
                msgspec.json.decode(event[6:])
    return events


async def use(
    url: str, streams: int, read: Callable[[aiohttp.ClientResponse], Awaitable[int]]
) -> tuple[int, float]:
    async def user(session: aiohttp.ClientSession, number: int) -> int:
        await asyncio.sleep(number * STAGGER_S)
        async with session.post(url + "/v1/chat/completions", data=BODY) as response:
            return await read(response)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        start_s = time.thread_time()
        counts = await asyncio.gather(*(user(session, number) for number in range(streams)))
        return sum(counts), time.thread_time() - start_s


def use_vllm(module: ModuleType, url: str, streams: int) -> Coroutine[None, None, tuple[int, float]]:
    """Its function for chat completions, in a session like that of its serve.py."""

    async def user(session: aiohttp.ClientSession, number: int) -> int:
        await asyncio.sleep(number * STAGGER_S)
        asked = module.RequestFuncInput(
            prompt="word " * 48, api_url=url + "/v1/chat/completions", prompt_len=48, output_len=48,
            model=truth.MODEL,
        )  # fmt: skip
        answer = await module.async_request_openai_chat_completions(asked, session)
        assert answer.success, answer.error
        return len(answer.itl) + 1 + EXTRA_EVENTS

    async def all_users() -> tuple[int, float]:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, keepalive_timeout=60),
            trust_env=True,
            timeout=aiohttp.ClientTimeout(total=6 * 60 * 60),
        ) as session:
            start_s = time.thread_time()
            counts = await asyncio.gather(*(user(session, number) for number in range(streams)))
            return sum(counts), time.thread_time() - start_s

    return all_users()


LOOPS: dict[str, Callable[[str, int], Coroutine[None, None, tuple[int, float]]]] = {
    "driver": drive,
    "over aiohttp": lambda url, streams: drive(url, streams, "aiohttp"),
    "bare": lambda url, streams: use(url, streams, read_bare),
    "bare + json": lambda url, streams: use(url, streams, read_json),
}


def cost_us(name: str, url: str, streams: int) -> float:
    """Thread CPU per event of one round."""
    events, cpu_s = loop.run(LOOPS[name](url, streams))
    return cpu_s / events * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--gap-ms", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    flags = ("--ttft-ms", "20", "--gap-ms", str(args.gap_ms), "--tokens", str(args.tokens))
    with tempfile.TemporaryDirectory() as folder:
        try:
            module, version = _vllm.load(Path(folder))
            LOOPS["vllm bench"] = partial(use_vllm, module)
            print(f"vllm {version}")
        except _vllm.Left as why:
            print(f"vllm bench is left out: {why}")
    costs: dict[str, list[float]] = {name: [] for name in LOOPS}
    with truth.serving(*flags) as server:
        for name in LOOPS:  # caches, imports and code paths warm, not counted
            cost_us(name, server.url, args.streams)
        for number in range(args.rounds):
            order = list(LOOPS) if number % 2 else list(reversed(LOOPS))
            for name in order:
                costs[name].append(cost_us(name, server.url, args.streams))
    _print(costs, args)


def _print(costs: dict[str, list[float]], args: argparse.Namespace) -> None:
    print(
        f"{args.streams} streams, an event every {args.gap_ms:g} ms each, {args.rounds} rounds, interleaved"
    )
    for name, values in costs.items():
        spread = f"{min(values):.1f} to {max(values):.1f}"
        print(f"  {name:<12} {statistics.median(values):6.2f} us CPU per event   ({spread})")
    works = {
        "over aiohttp": "the same path over the fallback transport",
        "bare": "counts `data:` and keeps nothing",
        "bare + json": "decodes every event",
        "vllm bench": "its request function",
    }
    for name, work in works.items():
        if name not in costs:
            continue
        ratios = [ours / theirs for ours, theirs in zip(costs["driver"], costs[name], strict=True)]
        low, ratio, high = median_interval(ratios)
        print(f"  driver / {name:<12} {ratio:.2f}   95 % interval {low:.2f} to {high:.2f}   ({work})")
        if name in TARGETS:
            print(f"  target at most {TARGETS[name]}: {verdict(ratio <= TARGETS[name])}")


if __name__ == "__main__":
    main()
