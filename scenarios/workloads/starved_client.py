"""A load generator that gets too little CPU: pinned to one core that it shares with busy processes.

    [fault]
    use = "scenarios.workloads.starved_client"
    hogs = 4                           # busy processes on the generator's core
    gap_ms = 5                         # between the tokens of a server that has another core
    tokens = 32                        # of each answer

The server keeps its pace whatever the load, so every delay that the client sees is the client's own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.workloads import Injection, Unavailable, hog
from tests.servers import truth


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        raise Unavailable("needs two cores: one for the server, one for the starved client")
    ours, theirs = sorted(before)[:2]
    flags = ("--ttft-ms", "20", "--gap-ms", str(options["gap_ms"]), "--tokens", str(options["tokens"]))
    with truth.serving(*flags) as server, hog.hogging([ours] * int(options["hogs"])):
        os.sched_setaffinity(server.pid, {theirs})
        os.sched_setaffinity(0, {ours})  # this thread and those it starts from here on
        try:
            yield Injection(endpoint=server.url)
        finally:
            os.sched_setaffinity(0, before)
