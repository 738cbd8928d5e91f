"""Who computes on a GPU: the server's processes against all others, as NVML counts them.

The counters of a GPU are device-wide, so without this a neighbour's work looks like the server's. In a
container whose process ids are not the host's everybody is another one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from perfdoctor.probes._nvml import attempt
from perfdoctor.probes._probe import Reading, gauges

FAMILY = "gpu.process"
EVERY_S = 1.0  # the driver keeps about a second of its own samples

METRICS = gauges(
    FAMILY,
    "nvidia-smi pmon -c 5 -s um    (percent, MB)",
    {
        "mem_used_bytes": ("bytes", "memory that its processes hold on the GPU"),
        "util": ("share", "time in which a kernel of its processes was resident, summed; no measure of work"),
    },
)


class Processes:
    """Readings labelled `who`: server or others. Those of one GPU, over the time since the last read."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self._seen_us = 0

    def read(self, ours: Collection[int]) -> dict[str, dict[str, float | None]]:
        """Empty where the driver does not tell."""
        ask = self._nvml.nvmlDeviceGetComputeRunningProcesses
        running = attempt(self._nvml, partial(ask, self._handle))
        if running is None:
            return {}
        held = {process.pid: process.usedGpuMemory for process in running}
        return split(held, self._utilisation(), ours)

    def _utilisation(self) -> dict[int, float]:
        """Mean share by pid since the last read. None is told apart from none: no sample means no work."""
        ask = partial(self._nvml.nvmlDeviceGetProcessUtilization, self._handle, self._seen_us)
        samples = [s for s in attempt(self._nvml, ask) or () if s.timeStamp > self._seen_us]
        self._seen_us = max((s.timeStamp for s in samples), default=self._seen_us)
        shares: dict[int, list[float]] = {}
        for sample in samples:
            if 0 <= sample.smUtil <= 100:  # the driver's stale entries read beyond
                shares.setdefault(sample.pid, []).append(sample.smUtil / 100)
        return {pid: sum(values) / len(values) for pid, values in shares.items()}


def split(
    held: Mapping[int, int | None], busy: Mapping[int, float], ours: Collection[int]
) -> dict[str, dict[str, float | None]]:
    """Sums by who; a process whose memory is not told makes its group's sum None."""
    found: dict[str, dict[str, float | None]] = {}
    for who, mine in (("server", True), ("others", False)):
        memory = [size for pid, size in held.items() if (pid in ours) is mine]
        known = [size for size in memory if size is not None]
        found[who] = {
            "mem_used_bytes": sum(known) if len(known) == len(memory) else None,
            "util": sum(share for pid, share in busy.items() if (pid in ours) is mine),
        }
    return found


def readings(gpu: int, values: Mapping[str, Mapping[str, float | None]]) -> list[Reading]:
    return [Reading(row, {"gpu": str(gpu), "who": who}, probe=FAMILY) for who, row in values.items()]
