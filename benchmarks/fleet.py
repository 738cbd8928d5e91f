"""Events a second that one, two or more driver processes take in, against a paced server that costs less.

The server is of as many processes as are asked for behind one port, and writes prebuilt bytes, so that the
client is the limit. Every stream gets an event each `--gap-ms`; levels of more and more streams are driven
with each number of workers, in turns.

Printed for each level and number of workers: events a second that arrived while all streams were open, as a
share of those due; of the worst worker its CPU, the share of time it waited for a core, and its p99 lag (what
an event waits in the kernel until the worker looks at it). Then, for each number of workers, the highest rate
at which 99 % of the events arrived in time with a p99 lag below LAG_LIMIT_S: the ceiling. With as many
processes as cores there is little to gain.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import heapq
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.fleet_driver import Fleet
from perfdoctor.loadgen.stage import Stage
from perfdoctor.model import Load, Prompts, RequestRecord, Target

ROOT = Path(__file__).parents[1]
LAG_LIMIT_S = 0.01
DELIVERED = 0.99  # share of the events due

# ------------------------------------------------------------------------------ the server

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_JSON = (
    b'{"id":"chatcmpl-b48a446c6ea53c39","object":"chat.completion.chunk","created":1796067623,"model":"paced",'
    b'"choices":[{"index":0,"delta":%b,"logprobs":null,"finish_reason":%b}]}'
)


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


_TOKEN = _chunk(b"data: " + _JSON % (b'{"content":" token"}', b"null") + b"\n\n")
_TAIL = _chunk(b"data: " + _JSON % (b"{}", b'"length"') + b"\n\ndata: [DONE]\n\n") + b"0\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_MAX_TOKENS = re.compile(rb'"max_tokens": *(\d+)')


class Paced(asyncio.Protocol):
    """One connection: a stream of `max_tokens` events for each request, at fixed instants."""

    due: list[tuple[float, int, Paced]] = []  # of this process: (instant, tie, connection)  # noqa: RUF012
    gap_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport, self._read = transport, b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, body = self._read.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not found or len(body) < int(length[1] if length else 0):
            return
        tokens = _MAX_TOKENS.search(body)
        self._left, self._read = int(tokens[1]) if tokens else 1, b""
        self._transport.write(_HEAD)
        heapq.heappush(self.due, (time.perf_counter() + self.gap_s, id(self), self))

    def speak(self, at_s: float) -> None:
        if self._transport.is_closing():
            return
        self._left -= 1
        self._transport.write(_TOKEN if self._left >= 0 else _TAIL)
        if self._left >= 0:
            heapq.heappush(self.due, (at_s + self.gap_s, id(self), self))


async def _serve(fd: int, gap_s: float) -> None:
    Paced.gap_s = gap_s
    listening = socket.socket(fileno=fd)
    await asyncio.get_running_loop().create_server(Paced, sock=listening, backlog=4096)
    while True:
        now_s = time.perf_counter()
        while Paced.due and Paced.due[0][0] <= now_s:
            at_s, _, connection = heapq.heappop(Paced.due)
            connection.speak(at_s)
        await asyncio.sleep(0.001)


@contextlib.contextmanager
def serving(processes: int, gap_s: float) -> Iterator[str]:
    """Endpoint of so many processes, each with a listener of its own on one port: the kernel deals the
    connections out among them."""
    port, children = 0, []
    for _ in range(processes):
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(("127.0.0.1", port))
        port = listening.getsockname()[1]
        command = [sys.executable, "-m", "benchmarks.fleet", "--serve-fd", str(listening.fileno())]
        with listening:
            children.append(
                subprocess.Popen(
                    [*command, "--gap-ms", str(gap_s * 1e3)], pass_fds=[listening.fileno()], cwd=ROOT
                )
            )
    try:
        time.sleep(1.0)
        yield f"http://127.0.0.1:{port}"
    finally:
        for child in children:
            child.kill()
            child.wait()


# ------------------------------------------------------------------------------ the client


class Seen(NamedTuple):
    due_per_s: float
    per_s: float  # events that arrived while all streams were open
    cpu_share: float
    wait_share: float  # of the time, for a core
    lag_p99_s: float

    @property
    def sound(self) -> bool:
        return self.per_s >= DELIVERED * self.due_per_s and self.lag_p99_s < LAG_LIMIT_S


async def drive(url: str, workers: int, streams: int, gap_s: float, length_s: float) -> Seen:
    """One answer for each stream, long enough for all of them to be open together for `length_s`."""
    ramp_up_s = min(2.0, streams * 0.002)
    tokens = int((length_s + ramp_up_s) / gap_s)
    load = Load(concurrency=streams, prompts=Prompts(output_tokens=tokens))
    records: list[RequestRecord] = []
    target = Target(endpoint=url, model="paced")
    async with Fleet(target, load, Clock(), records.append, None, workers) as fleet:
        await fleet.run_stage(Stage("steady", streams, requests=streams, ramp_up_s=ramp_up_s))
        facts = fleet.client_facts()
    assert all(record.outcome == "ok" for record in records), next(r for r in records if r.outcome != "ok")
    from_s, to_s = max(r.token_at_s[0] for r in records), min(r.token_at_s[-1] for r in records)
    arrived = sum(from_s <= at_s < to_s for r in records for at_s in r.token_at_s)
    return Seen(
        due_per_s=streams / gap_s,
        per_s=arrived / (to_s - from_s) if to_s > from_s else 0.0,  # never all open: hopelessly late
        cpu_share=facts.cpu_share or 0.0,
        wait_share=facts.runq_wait_share or 0.0,
        lag_p99_s=facts.loop_lag_p99_s or 0.0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--streams", type=int, nargs="+", default=[256, 512, 640, 768, 1024])
    parser.add_argument("--gap-ms", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--servers", type=int, default=1, help="server processes")
    parser.add_argument("--serve-fd", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve_fd is not None:
        loop.run(_serve(args.serve_fd, args.gap_ms / 1e3))
        return
    print(
        f"{os.cpu_count()} cores, {args.servers} server processes, an event every {args.gap_ms:g} ms a stream"
    )
    print("streams  workers   events/s     of due    CPU   waits   lag p99")
    ceilings = dict.fromkeys(args.workers, 0.0)
    with serving(args.servers, args.gap_ms / 1e3) as url:
        for streams in args.streams:
            for workers in args.workers:
                seen = loop.run(drive(url, workers, streams, args.gap_ms / 1e3, args.seconds))
                share = seen.per_s / seen.due_per_s
                print(
                    f"{streams:7}  {workers:7}  {seen.per_s:9,.0f}  {share:9.1%}  {seen.cpu_share:5.0%}"
                    f"  {seen.wait_share:6.0%}  {seen.lag_p99_s * 1e3:6.1f} ms",
                    flush=True,
                )
                if seen.sound:
                    ceilings[workers] = max(ceilings[workers], seen.per_s)
    first = ceilings[args.workers[0]]
    for workers, per_s in ceilings.items():
        gain = f"{per_s / first:.2f} x that of {args.workers[0]}" if first else "no level was sound"
        print(f"ceiling of {workers}: {per_s:,.0f} events/s, {gain}")


if __name__ == "__main__":
    main()
