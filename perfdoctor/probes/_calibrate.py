"""This machine's memory ceilings, measured before the load: the roof of a decode on the CPU."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from perfdoctor.probes._cgroup import find_group, quota_cores, read_memory
from perfdoctor.probes._procfs import Files, parse_keys

REPETITIONS = 3  # the best counts: a ceiling is what the memory can do, others' traffic only hides it
MIN_BYTES = 256 << 20  # both buffers of all threads
CACHE_FACTOR = 2  # a stream twice the size of a cache finds nothing of its last pass there
MEMORY_SHARE = 0.125  # of what is available, at most


def calibrate() -> dict[str, float | None]:
    """Ceilings of all usable cores together; None where measuring failed.

    `copy_bytes_per_s`: bytes read plus bytes written. `read_bytes_per_s`: bytes read by threads that keep
    nothing of them, which is what a decode does with the weights.
    """
    rates: dict[str, float | None] = {"copy_bytes_per_s": None, "read_bytes_per_s": None}
    with contextlib.suppress(ImportError, MemoryError, OSError, KeyError):
        rates = dict(memory_ceilings(usable_cores(), total_bytes()))
    return rates


def memory_ceilings(threads: int, total: int) -> dict[str, float]:
    """numpy releases the GIL while it copies and searches, so threads share out the memory channels."""
    import numpy as np

    each = max(1, total // (2 * threads * 8))  # 8-byte words in each of the two buffers of a thread
    pairs = [(np.empty(each, np.int64), np.empty(each, np.int64)) for _ in range(threads)]
    _run(pairs, lambda source, target: source.fill(1))  # gives the pages: unwritten ones share a zero page
    _run(pairs, lambda source, target: target.fill(0))
    copy_s = min(_run(pairs, lambda source, target: np.copyto(target, source)) for _ in range(REPETITIONS))
    # a maximum costs least per byte of what numpy can do to every word; a sum is slower than memory
    read_s = min(_run(pairs, lambda source, target: (source.max(), target.max())) for _ in range(REPETITIONS))
    moved = 2 * 8 * each * threads
    return {"copy_bytes_per_s": moved / copy_s, "read_bytes_per_s": moved / read_s}


def _run(pairs: Sequence[tuple[Any, Any]], work: Callable[[Any, Any], Any]) -> float:
    """Seconds from the common start to the end of the slowest thread, one thread a pair."""
    start = threading.Barrier(len(pairs) + 1)

    def worker(source: Any, target: Any) -> None:
        start.wait()
        work(source, target)

    threads = [threading.Thread(target=worker, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    start.wait()
    begin_s = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin_s


def usable_cores() -> int:
    """What affinity and quota leave; never below one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = quota_cores()
    return max(1, min(cores, math.ceil(quota)) if quota else cores)


def total_bytes() -> int:
    """Large against all last-level caches, small against the memory this process may use."""
    return int(min(max(MIN_BYTES, CACHE_FACTOR * cache_bytes()), allowed_bytes() * MEMORY_SHARE))


def cache_bytes(cpus: str = "/sys/devices/system/cpu") -> int:
    """All last-level caches of the host added up; 0 where the kernel does not tell."""
    caches: dict[str, int] = {}
    for folder in Path(cpus).glob("cpu[0-9]*/cache/index3"):
        try:
            sharers = (folder / "shared_cpu_list").read_text().strip()
            caches[sharers] = int((folder / "size").read_text().strip().rstrip("K")) * 1024
        except (OSError, ValueError):
            continue
    return sum(caches.values())


def allowed_bytes() -> float:
    """Available on the host, and no more than the control group's limit."""
    files = Files()
    try:
        available = parse_keys(files.read("/proc/meminfo"), (b"MemAvailable",))[b"MemAvailable"] * 1024
        group = find_group(None, "memory")
        limit = read_memory(files, group)[1] if group else None
        return available if limit is None else min(available, limit)
    finally:
        files.close()
