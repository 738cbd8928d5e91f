"""Busy programs on the core that the model server must use; the load generator has another one.

[fault]
use = "scenarios.workloads.cpu_rival"
rivals = 2
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.workloads import Injection, Unavailable
from scenarios.workloads.hog import hogging


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise Unavailable("needs two cores, one of them for the load generator")
    taskset = shutil.which("taskset")
    if taskset is None:
        raise Unavailable("needs taskset, of the package util-linux")
    core = cores[-1]
    with hogging([core] * int(options["rivals"])):
        os.sched_setaffinity(0, set(cores[:-1]))
        try:
            yield Injection(prefix=(taskset, "-c", str(core)))
        finally:
            os.sched_setaffinity(0, set(cores))
