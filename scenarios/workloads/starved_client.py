"""A load generator that gets too little CPU: pinned to one core that it shares with busy processes.

    [fault]
    use = "scenarios.workloads.starved_client"
    hogs = 4                           # busy processes on the generator's core
    pace_s = 0.005                     # between tokens of the server, which has the other core to itself

The server keeps its pace whatever happens, so every delay that the client sees is the client's own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.workloads import Injection, Unavailable, hog, paced


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        raise Unavailable("needs two cores: one for the server, one for the starved client")
    ours, theirs = sorted(before)[:2]
    with paced.serving(float(options["pace_s"]), theirs) as url, hog.hogging([ours] * int(options["hogs"])):
        os.sched_setaffinity(0, {ours})  # this thread and those it starts from here on
        try:
            yield Injection(endpoint=url)
        finally:
            os.sched_setaffinity(0, before)
