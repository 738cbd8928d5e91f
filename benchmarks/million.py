"""A million recorded plain requests in one run and its report: memory, pauses of the collector, pace, time.

    python benchmarks/million.py [--requests N] [--users C] [--keep FOLDER]

The real path: driver, transport and run folder in one child process, a server of the fewest possible lines in
another; both on loopback. The goals are 1.5 GB of memory at most, and no pause of the garbage collector above
20 ms in the phase that counts; for the report the same memory and 20 s. Cores are shared with whatever else
runs here: read the pace as a lower bound.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

RSS_GOAL_BYTES = 1.5e9
PAUSE_GOAL_S = 0.020
REPORT_GOAL_S = 20.0
BODY = b'{"ok": true}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(BODY),
    BODY,
)


# ------------------------------------------------------------------------------ the server


class _Server(asyncio.Protocol):
    """One answer for each read that ends a head; requests without a body, never pipelined."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if b"\r\n\r\n" in data:
            self._transport.write(ANSWER)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# ------------------------------------------------------------------------------ the client


def drive(url: str, requests: int, users: int, folder: str) -> None:
    """One load test into a run folder, as the command line makes it, without its report."""
    from perfdoctor import stages, store
    from perfdoctor.loadgen import loop
    from perfdoctor.model import Load, RunFacts, Scenario, Target
    from perfdoctor.progress import Watch

    load = Load(concurrency=users, requests=requests, warmup_requests=10 * users)
    scenario = Scenario(name="million", target=Target(endpoint=url, api="http", stream=False), load=load)
    run = stages.Conduct(stages.Orders(scenario, "load-test"), Watch(quiet=True))
    facts = RunFacts(
        command="load-test", scenario=scenario, wall_zero=run.clock.wall_zero, zero_ns=run.clock.zero_ns
    )
    writer = store.create_run(facts, Path(folder))
    loop.run(stages.drive(run, writer, load))
    writer.seal(state="complete", phases=tuple(run.phases))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=32)
    parser.add_argument("--keep", help="write the run here and keep it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or f"{scratch}/run"
        measure(args.requests, args.users, folder)
        measure_report(folder)


def measure(requests: int, users: int, folder: str) -> None:
    me = [sys.executable, __file__]
    with subprocess.Popen([*me, "serve"], stdout=subprocess.PIPE) as server:
        assert server.stdout
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        began_s = time.perf_counter()
        client = subprocess.Popen([*me, "drive", url, str(requests), str(users), folder])
        _, status, usage = os.wait4(client.pid, 0)
        wall_s = time.perf_counter() - began_s
        server.kill()
    if status:
        raise SystemExit("the client failed")
    facts = msgspec.json.decode((Path(folder) / "run.json").read_bytes())
    log = Path(folder) / "requests.jsonl"
    cpu_s = usage.ru_utime + usage.ru_stime
    rss_bytes, pause_s = usage.ru_maxrss * 1024, facts["client"]["gc_pause_max_s"]
    print(f"requests recorded   {requests:,} over loopback by the {facts['client']['transport']} transport")
    print(f"pace                {requests / wall_s:,.0f}/s; {requests / cpu_s:,.0f} per second of client CPU")
    print(f"memory at most      {rss_bytes / 1e9:.2f} GB   {_verdict(rss_bytes, RSS_GOAL_BYTES)} 1.5 GB")
    print(f"longest GC pause    {pause_s * 1e3:.1f} ms   {_verdict(pause_s, PAUSE_GOAL_S)} 20 ms")
    print(f"run folder          {log.stat().st_size / 1e6:,.0f} MB of requests")


def measure_report(folder: str) -> None:
    """`perfdoctor report` of that folder in a process of its own, as a user waits for it."""
    command = [sys.executable, "-m", "perfdoctor", "report", folder]
    began_s = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - began_s
    if status:
        raise SystemExit("the report failed")
    rss_bytes, cpu_s = usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime
    print(
        f"report of that run  {wall_s:.1f} s   {_verdict(wall_s, REPORT_GOAL_S)} 20 s; {cpu_s:.1f} s of CPU"
    )
    print(f"its memory at most  {rss_bytes / 1e9:.2f} GB   {_verdict(rss_bytes, RSS_GOAL_BYTES)} 1.5 GB")


def _verdict(value: float, goal: float) -> str:
    return "within" if value <= goal else "ABOVE"


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        import uvloop

        uvloop.run(serve())
    elif sys.argv[1:2] == ["drive"]:
        drive(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        main()
