"""How long `perfdoctor --help` takes, beside an interpreter that does nothing. Target: 150 ms.

Both are started in turns, so that a busy moment hits both. Wall clock from fork to exit, median of 15.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks._ratio import verdict

TARGET_S = 0.150
RUNS = 15
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "perfdoctor --help": [sys.executable, "-m", "perfdoctor", "--help"],
}


def wall_s(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for command in COMMANDS.values():  # byte code written, files in the page cache
        wall_s(command)
    for _ in range(RUNS):
        for name, command in COMMANDS.items():
            times[name].append(wall_s(command))
    for name, values in times.items():
        middle, best, worst = (f(values) * 1e3 for f in (statistics.median, min, max))
        print(f"  {name:18} {middle:6.1f} ms   ({best:.1f} to {worst:.1f}, {RUNS} runs)")
    bare, ours = (statistics.median(values) for values in times.values())
    print(f"  ratio {ours / bare:.1f}; target {TARGET_S * 1e3:.0f} ms: {verdict(ours <= TARGET_S)}")


if __name__ == "__main__":
    main()
