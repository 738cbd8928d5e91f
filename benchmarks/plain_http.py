"""Requests for each second of the client's CPU on small bodies: perfdoctor beside hey and wrk, interleaved.

    python -m benchmarks.plain_http [--requests N] [--users C] [--rounds R]

All three ask the same server in a process of its own, with connections kept alive. hey is Go and keeps one
number for each request, wrk is C and keeps a histogram; perfdoctor keeps and writes a whole record of each.
CPU is that of the client's process with all its threads, user and system, as the kernel counted it; for
perfdoctor while the load runs, without the imports. The ratio to hey is the result; wrk shows the floor.
Rows whose tool is missing are left out, with the reason.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks._ratio import median_interval, verdict

TARGET = 0.8  # of hey's requests per CPU second
NOT_FOUND = "not installed (Debian package of the same name)"


def serve() -> None:
    import uvloop

    from benchmarks import million

    uvloop.run(million.serve())


def drive(url: str, requests: int, users: int) -> None:
    """A load test into a run folder, as the command line makes it; prints the CPU seconds that it took."""
    from perfdoctor import stages, store
    from perfdoctor.loadgen import loop
    from perfdoctor.model import Load, RunFacts, Scenario, Target
    from perfdoctor.progress import Watch

    load = Load(concurrency=users, requests=requests, workers=1)
    scenario = Scenario(target=Target(endpoint=url, api="http", stream=False), load=load)
    run = stages.Conduct(stages.Orders(scenario, "load-test"), Watch(quiet=True))
    facts = RunFacts(scenario=scenario, wall_zero=run.clock.wall_zero, zero_ns=run.clock.zero_ns)
    with tempfile.TemporaryDirectory() as folder:
        writer = store.create_run(facts, Path(folder) / "run")
        before_s = time.process_time()
        loop.run(stages.drive(run, writer, load))
        writer.seal(state="complete", phases=tuple(run.phases))
        print(time.process_time() - before_s)


def by_perfdoctor(url: str, requests: int, users: int) -> float:
    command = [sys.executable, "-m", "benchmarks.plain_http", "drive", url, str(requests), str(users)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return requests / float(done.stdout)


def by_hey(url: str, requests: int, users: int) -> float:
    each = requests // users * users  # hey drops the rest
    text, cpu_s = _timed("hey", "-n", str(each), "-c", str(users), url)
    answered = sum(map(int, re.findall(r"\[200\]\s+(\d+) responses", text)))
    assert answered == each, text
    return each / cpu_s


def by_wrk(url: str, requests: int, users: int) -> float:
    text, cpu_s = _timed("wrk", "-t", "1", "-c", str(users), "-d", "3s", url)
    counted = re.search(r"(\d+) requests in", text)
    assert counted, text
    return int(counted[1]) / cpu_s


def _timed(*command: str) -> tuple[str, float]:
    """(output, CPU seconds) of a command."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        text = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, text
    return text, usage.ru_utime + usage.ru_stime


CLIENTS: dict[str, Callable[[str, int, int], float]] = {
    "perfdoctor": by_perfdoctor,
    "hey": by_hey,
    "wrk": by_wrk,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=40_000)
    parser.add_argument("--users", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    present = {name: run for name, run in CLIENTS.items() if name == "perfdoctor" or shutil.which(name)}
    rates: dict[str, list[float]] = {name: [] for name in present}
    me = [sys.executable, "-m", "benchmarks.plain_http", "serve"]
    with subprocess.Popen(me, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
        try:
            for number in range(args.rounds):
                for name in present if number % 2 else reversed(present):
                    rates[name].append(present[name](url, args.requests, args.users))
        finally:
            server.kill()
    _print(rates, args)


def _print(rates: dict[str, list[float]], args: argparse.Namespace) -> None:
    print(f"{args.requests:,} requests by {args.users} users, {args.rounds} rounds, interleaved")
    for name in CLIENTS:
        if name in rates:
            spread = f"{min(rates[name]):,.0f} to {max(rates[name]):,.0f}"
            print(f"  {name:<11} {statistics.median(rates[name]):9,.0f} requests per CPU second   ({spread})")
        else:
            print(f"  {name:<11} left out: {NOT_FOUND}")
    for name in ("hey", "wrk"):
        if name in rates:
            ratios = [a / b for a, b in zip(rates["perfdoctor"], rates[name], strict=True)]
            low, ratio, high = median_interval(ratios)
            print(f"  perfdoctor / {name:<4} {ratio:.2f}   95 % interval {low:.2f} to {high:.2f}")
            if name == "hey":
                print(f"  target at least {TARGET}: {verdict(ratio >= TARGET)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve()
    elif sys.argv[1:2] == ["drive"]:
        drive(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
