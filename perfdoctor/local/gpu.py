"""CUDA readings that only the process itself can take: its allocator, and the memory's copy ceiling."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import torch

from perfdoctor.local.telemetry import Channel

PERIOD_S = 1.0
COPY_BYTES = 1 << 30
COPY_LEAST_BYTES = 256 << 20  # below this, caches decide what is measured
COPIES = 10

# our name -> torch.cuda.memory_stats()'s
STATISTICS = {
    "allocated_bytes": "allocated_bytes.all.current",
    "reserved_bytes": "reserved_bytes.all.current",
    "inactive_split_bytes": "inactive_split_bytes.all.current",
    "alloc_retries": "num_alloc_retries",
    "ooms": "num_ooms",
    "device_allocs": "num_device_alloc",
    "device_frees": "num_device_free",
}


def allocator_values(statistics: Mapping[str, Any]) -> dict[str, float | None]:
    """The `torch` sample; None for a statistic that this torch does not keep."""
    return {name: statistics.get(key) for name, key in STATISTICS.items()}


def watch_allocator(channel: Channel, device: str) -> None:
    """A sample every second from a daemon thread, for as long as the process lives.

    Call it with the model loaded: switched off, the caching allocator counts nothing and says 0 for all.
    """
    if not torch.cuda.memory_allocated(device):
        channel.absent("torch", "torch's caching allocator is off, and only that one counts")
        return

    def watch() -> None:
        pause = threading.Event()
        while not pause.wait(PERIOD_S):
            channel.sample("torch", allocator_values(torch.cuda.memory_stats(device)))

    threading.Thread(target=watch, name="allocator", daemon=True).start()


def copy_bytes_per_s(device: str) -> float | None:
    """Device-to-device copy rate, bytes read plus bytes written; None without room for two buffers."""
    free, _ = torch.cuda.mem_get_info(device)
    size = min(COPY_BYTES, free // 4)
    if size < COPY_LEAST_BYTES:
        return None
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    target.copy_(source)  # the first touch maps the pages
    start.record()
    for _ in range(COPIES):
        target.copy_(source)
    end.record()
    end.synchronize()
    rate = 2.0 * size * COPIES / (start.elapsed_time(end) / 1e3)
    del source, target
    torch.cuda.empty_cache()
    return rate
