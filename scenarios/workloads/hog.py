"""Processes that keep given cores busy. Run by hand: `python -m scenarios.workloads.hog 0 0 1`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

LOOP = "import os; os.sched_setaffinity(0, {%d})\nwhile os.getppid() == %d: sum(range(100_000))"


@contextlib.contextmanager
def hogging(cores: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """One process for each entry, pinned to that core; a core named twice gets two. They end with us."""
    with contextlib.ExitStack() as stack:
        pids = []
        for core in cores:
            process = subprocess.Popen([sys.executable, "-S", "-c", LOOP % (core, os.getpid())])
            stack.callback(process.wait)
            stack.callback(process.kill)
            pids.append(process.pid)
        yield tuple(pids)


def main() -> None:
    with hogging([int(word) for word in sys.argv[1:]]), contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()


if __name__ == "__main__":
    main()
