"""What the GPU really does: engine, SM, tensor and memory activity, link traffic, clocks and power.

The fine metrics are NVML GPM: averages over the time since the last sample, of the whole device. `util` is
only recorded: a one-thread kernel and a plain copy both read 100 % there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from perfdoctor.probes import _gpu_processes
from perfdoctor.probes._nvml import Gpm, foreign_processes, handles_of, open_nvml, read_plain, with_processes
from perfdoctor.probes._probe import Gap, Probe, Reading, Unavailable, gauges
from perfdoctor.probes._subject import Subject

LOOK_EVERY_S = 2.0  # for the server's processes on the GPUs

METRICS = (
    *gauges(
        "gpu",
        "nvidia-smi dmon -s u --gpm-metrics 1,2,3,5,10,20,21    (percent, MiB/s)",
        {
            "graphics_active": ("share", "time any kernel was resident"),
            "sm_active": ("share", "SMs with a warp resident, over time and SMs"),
            "sm_occupancy": ("share", "resident warps, of the most possible"),
            "tensor_active": ("share", "cycles in which the tensor cores worked"),
            "dram_active": ("share", "memory traffic, of the theoretical peak; an H200 copy reaches 0.89"),
            "pcie_tx_bytes_per_s": ("bytes/s", "PCIe traffic from the GPU"),
            "pcie_rx_bytes_per_s": ("bytes/s", "PCIe traffic to the GPU; about 3 kB for each kernel launch"),
        },
    ),
    *gauges(
        "gpu",
        "nvidia-smi --query-gpu=utilization.gpu,utilization.memory,power.draw,clocks.sm,clocks.mem,"
        "clocks_event_reasons.active,memory.used,temperature.gpu --format=csv",
        {
            "util": ("share", "time with any kernel or copy; no measure of work, carries no verdict"),
            "mem_util": ("share", "time with any memory access; carries no verdict"),
            "power_w": ("W", "power of the board"),
            "sm_clock_mhz": ("MHz", "clock of the SMs"),
            "mem_clock_mhz": ("MHz", "clock of the memory"),
            "clock_event_reasons": ("bits", "why the clock is lowered: 0x4 power cap, 0x20 and 0x40 thermal"),
            "mem_used_bytes": ("bytes", "memory taken by all processes"),
            "temperature_c": ("°C", "temperature of the chip"),
        },
    ),
    *gauges(
        "gpu",
        "nvidia-smi --query-compute-apps=pid,gpu_uuid,used_memory --format=csv",
        {"other_processes": ("", "processes that compute on the GPU beside the server's")},
    ),
    *_gpu_processes.METRICS,
)


class GpuReader:
    """One GPU a tick, in turn: eight cost no more than one, and GPM covers all the time between."""

    def __init__(self, subject: Subject, nvml: Any, now: Callable[[], float] = time.monotonic) -> None:
        self._subject, self._nvml, self._now = subject, nvml, now
        self._handles = handles_of(nvml)
        if not self._handles:
            raise Unavailable("unsupported", "the NVIDIA driver shows no GPU")
        self._gpm = [Gpm(nvml, handle) for handle in self._handles]
        self._shown = list(range(len(self._handles)))
        self._found = False
        self._look_due_s = 0.0
        self._turn = 0
        self._others: dict[int, int | None] = {}
        self._count_due_s = 0.0
        self._processes = [_gpu_processes.Processes(nvml, handle) for handle in self._handles]
        self._compare_due_s = [0.0] * len(self._handles)
        for handle in self._handles:
            read_plain(nvml, handle)  # the first answers take the driver tens of milliseconds

    @property
    def gaps(self) -> Sequence[Gap]:
        return [gap for gap in (self._gpm[i].gap for i in self._shown) if gap][:1]

    def read(self) -> Sequence[Reading]:
        self._look()
        self._turn += 1
        index = self._shown[self._turn % len(self._shown)]
        fine, why = self._gpm[index].read(self._now())
        values = {**fine, **read_plain(self._nvml, self._handles[index])}
        values["other_processes"] = self._count_others().get(index)
        return (Reading(values, {"gpu": str(index)}, why=why), *self._compare(index))

    def _compare(self, index: int) -> Sequence[Reading]:
        """The server's processes against all others, once a second."""
        pids = self._subject.pids()
        if not pids or self._now() < self._compare_due_s[index]:
            return ()
        self._compare_due_s[index] = self._now() + _gpu_processes.EVERY_S
        return _gpu_processes.readings(index, self._processes[index].read(pids))

    def _count_others(self) -> dict[int, int | None]:
        """By GPU, counted anew every two seconds: processes come and go rarely."""
        if self._now() >= self._count_due_s:
            self._count_due_s = self._now() + LOOK_EVERY_S
            pids = self._subject.pids()
            self._others = {i: foreign_processes(self._nvml, self._handles[i], pids) for i in self._shown}
        return self._others

    def _look(self) -> None:
        """Narrow down to the server's GPUs once they can be seen; until then all are read."""
        pids = self._subject.pids()
        if self._found or not pids or len(self._handles) == 1 or self._now() < self._look_due_s:
            return
        self._look_due_s = self._now() + LOOK_EVERY_S
        used = with_processes(self._nvml, self._handles, pids)
        if used:
            self._shown, self._found = used, True

    def close(self) -> None:
        for gpm in self._gpm:
            gpm.close()
        self._nvml.nvmlShutdown()


def open_gpu(subject: Subject, stop: threading.Event) -> GpuReader:
    return GpuReader(subject, open_nvml())


PROBE = Probe(name="gpu", rate_hz=5.0, max_share=0.0085, metrics=METRICS, open=open_gpu)
