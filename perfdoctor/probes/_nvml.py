"""NVML at the edge: opening the library, one GPU's plain readings, and its GPM metrics.

The library arrives as an argument (`pynvml`, or a small stand-in), so that no GPU is needed to test the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from perfdoctor.model import GpuFacts
from perfdoctor.probes._probe import Gap, Unavailable

MIB = 1 << 20
MIN_PAIR_S = 0.1  # closer GPM samples read as zeros and DRAM as NaN (measured on H200, driver 580)

# metric id of nvml.h -> (our name, factor): percent become shares, MiB/s become bytes/s
GPM_METRICS = {
    1: ("graphics_active", 0.01),
    2: ("sm_active", 0.01),
    3: ("sm_occupancy", 0.01),
    5: ("tensor_active", 0.01),
    10: ("dram_active", 0.01),
    20: ("pcie_tx_bytes_per_s", MIB),
    21: ("pcie_rx_bytes_per_s", MIB),
}
GPM_NAMES = tuple(name for name, _ in GPM_METRICS.values())


def open_nvml() -> Any:
    """The initialised library. Unavailable says what is missing."""
    try:
        import pynvml
    except ImportError as error:
        raise Unavailable("unsupported", "the package nvidia-ml-py is not installed") from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise Unavailable(
            "unsupported",
            f"no NVIDIA driver answers here ({error})",
            "install the NVIDIA driver; start a container with --gpus all",
        ) from error
    return pynvml


def handles_of(nvml: Any) -> list[Any]:
    return [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]


def with_processes(nvml: Any, handles: Sequence[Any], pids: Sequence[int]) -> list[int]:
    """Indices of the GPUs on which one of the processes computes.

    Empty when none is seen: none yet, or in a container whose process ids are not the host's.
    """
    wanted = set(pids)
    found = []
    for index, handle in enumerate(handles):
        running = attempt(nvml, partial(nvml.nvmlDeviceGetComputeRunningProcesses, handle)) or ()
        if any(process.pid in wanted for process in running):
            found.append(index)
    return found


def foreign_processes(nvml: Any, handle: Any, pids: Sequence[int]) -> int | None:
    """How many processes beside ours compute on a GPU.

    None when ours is not among those seen: it is not there yet, or process ids here are not the host's.
    """
    running = attempt(nvml, partial(nvml.nvmlDeviceGetComputeRunningProcesses, handle))
    seen = {process.pid for process in running or ()}
    return len(seen - set(pids)) if seen & set(pids) else None


def attempt(nvml: Any, call: Callable[[], Any]) -> Any:
    """The call's answer, or None where this GPU does not offer it."""
    try:
        return call()
    except nvml.NVMLError:
        return None


def read_plain(nvml: Any, handle: Any) -> dict[str, float | None]:
    """What every NVIDIA GPU tells, each on its own. `util` counts copies and one-thread kernels as busy."""

    def ask(function: str, *arguments: Any) -> Any:
        return attempt(nvml, lambda: getattr(nvml, function)(handle, *arguments))

    util = ask("nvmlDeviceGetUtilizationRates")
    power_mw, memory = ask("nvmlDeviceGetPowerUsage"), ask("nvmlDeviceGetMemoryInfo")
    return {
        "util": None if util is None else util.gpu / 100,
        "mem_util": None if util is None else util.memory / 100,
        "power_w": None if power_mw is None else power_mw / 1e3,
        "sm_clock_mhz": ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        "mem_clock_mhz": ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        "clock_event_reasons": ask("nvmlDeviceGetCurrentClocksThrottleReasons"),
        "mem_used_bytes": None if memory is None else memory.used,
        "temperature_c": ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
    }


def gpm_value(factor: float, status: int, value: float) -> float | None:
    """NaN and values the driver marks as failed are missing, not zero."""
    return value * factor if status == 0 and math.isfinite(value) else None


class Gpm:
    """GPM metrics of one GPU between two reads. `gap` tells why they cannot be had."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        """Support is tested by taking a sample; the driver's own flag is not to be trusted."""
        self._nvml, self._handle = nvml, handle
        self._samples: list[Any] = []
        self._taken_s: float | None = None
        self.gap: Gap | None = None
        try:
            self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
            nvml.nvmlGpmSampleGet(handle, self._samples[0])
        except (nvml.NVMLError, AttributeError) as error:
            self.gap = Gap(
                "GPM metrics (" + ", ".join(GPM_NAMES) + ")",
                f"the driver refuses GPM samples ({error}); it needs a Hopper or newer GPU without MIG",
            )
            self.close()

    def read(self, now_s: float) -> tuple[dict[str, float | None], str | None]:
        """(values over the time since the last read, why any is None)."""
        if self.gap:
            return dict.fromkeys(GPM_NAMES), None
        if self._taken_s is not None and now_s - self._taken_s < MIN_PAIR_S:
            return dict.fromkeys(GPM_NAMES), "read less than 100 ms after the last one"
        first = self._taken_s is None
        older, newer = self._samples
        self._nvml.nvmlGpmSampleGet(self._handle, newer)
        self._samples, self._taken_s = [newer, older], now_s
        if first:
            return dict.fromkeys(GPM_NAMES), "the first GPM sample has nothing to be compared with"
        values = self._compare(older, newer)
        lost = [name for name, value in values.items() if value is None]
        return values, f"the driver gave no number for {', '.join(lost)}" if lost else None

    def _compare(self, older: Any, newer: Any) -> dict[str, float | None]:
        request = self._nvml.c_nvmlGpmMetricsGet_t()
        request.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        request.sample1, request.sample2 = older, newer
        request.numMetrics = len(GPM_METRICS)
        for slot, metric in zip(request.metrics, GPM_METRICS, strict=False):
            slot.metricId = metric
        answer = self._nvml.nvmlGpmMetricsGet(request)
        return {
            name: gpm_value(factor, slot.nvmlReturn, slot.value)
            for slot, (name, factor) in zip(answer.metrics, GPM_METRICS.values(), strict=False)
        }

    def close(self) -> None:
        for sample in self._samples:
            attempt(self._nvml, partial(self._nvml.nvmlGpmSampleFree, sample))
        self._samples = []


def gpu_facts(nvml: Any, index: int) -> GpuFacts:
    """What stays the same during a run; a refused question leaves its field None."""
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def ask(function: str, *arguments: Any) -> Any:
        return attempt(nvml, lambda: getattr(nvml, function)(*arguments))

    memory = ask("nvmlDeviceGetMemoryInfo", handle)
    limit_mw = ask("nvmlDeviceGetEnforcedPowerLimit", handle)
    generation = ask("nvmlDeviceGetMaxPcieLinkGeneration", handle)
    width = ask("nvmlDeviceGetMaxPcieLinkWidth", handle)
    gpm = Gpm(nvml, handle)
    gpm.close()
    return GpuFacts(
        index=index,
        name=_text(ask("nvmlDeviceGetName", handle)) or "unknown",
        memory_bytes=None if memory is None else memory.total,
        driver=_text(ask("nvmlSystemGetDriverVersion")),
        gpm=gpm.gap is None,
        power_limit_w=None if limit_mw is None else limit_mw / 1e3,
        sm_clock_max_mhz=ask("nvmlDeviceGetMaxClockInfo", handle, nvml.NVML_CLOCK_SM),
        pcie=f"gen{generation} x{width}" if generation and width else None,
    )


def _text(value: str | bytes | None) -> str | None:
    """Older bindings answer in bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
