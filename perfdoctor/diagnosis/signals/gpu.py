"""GPU counters over the steady phase and its decode windows, device-wide: NVML GPM, or a DCGM exporter's.

`util` and `mem_util` are left out on purpose: one thread that spins makes them read 100 %.
"""

from __future__ import annotations

from perfdoctor.diagnosis.measure import Measure, Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, Window, median
from perfdoctor.model import Sample

DRAM_FULL = 0.89  # what a pure copy reads on an H200: 4,287-4,378 of 4,800 GB/s

_METRICS = {
    "graphics_active": ("share", "share of time in which any kernel ran"),
    "sm_active": ("share", "share of multiprocessors that had work, averaged over time"),
    "sm_occupancy": ("share", "resident warps over the most possible"),
    "tensor_active": ("share", "share of cycles in which the tensor units worked"),
    "dram_active": ("share", "share of the peak memory bandwidth in use; a pure copy reads 0.89"),
    "pcie_rx_bytes_per_s": ("bytes/s", "traffic to the GPU; launching kernels alone makes 46-78 MiB/s"),
    "power_w": ("W", "power draw"),
}


@signal("gpu.used", unit="flag")
def on_gpu(obs: Observations) -> float:
    """1 when the model runs on a GPU of this host, 0 when it runs on the CPU or the host has no GPU.

    Known from the local model; for a server that does not say, the host's GPUs must hold its weights.
    """
    target = obs.facts.target
    if target.device:
        return 1.0 if target.device.startswith("cuda") else 0.0
    if target.remote:
        raise NoValue("the server is on another host")
    if not obs.facts.host.gpus:
        return 0.0
    try:
        used = max(of_device(obs, obs.phase("steady"), "mem_used_bytes"))
    except NoValue:
        return 1.0
    return 1.0 if used >= (target.weights_bytes or 2**30) else 0.0


def device_label(obs: Observations) -> str:
    """The GPU that runs the model: named by the model, else the one with most memory in use."""
    _, _, index = (obs.facts.target.device or "").partition(":")
    labels = {s.labels.get("gpu", "0") for s in obs.samples("gpu")}
    if index in labels:
        return index
    return max(sorted(labels), key=lambda g: max(_used(s) for s in obs.samples("gpu") if _is(s, g)))


def _is(sample: Sample, gpu: str) -> bool:
    return sample.labels.get("gpu", "0") == gpu


def _used(sample: Sample) -> float:
    return sample.values.get("mem_used_bytes") or 0.0


def of_device(obs: Observations, window: Window, metric: str) -> list[float]:
    """Readings of the GPU that runs the model: the driver's own, else a DCGM exporter's."""
    label = device_label(obs)
    labelled = any("gpu" in s.labels for s in obs.samples("gpu"))
    try:
        return window.gauge("gpu", metric, **({"gpu": label} if labelled else {}))
    except NoValue as missing:
        try:
            return window.gauge("dcgm", metric, gpu=label)
        except NoValue:
            raise missing from None


def _steady(metric: str) -> Measure:
    unit, meaning = _METRICS[metric]

    def compute(obs: Observations) -> Reading:
        require_gpu(obs)
        values = of_device(obs, obs.phase("steady"), metric)
        return Reading(median(values), n=len(values))

    return Measure(f"gpu.{metric}.steady.p50", unit, compute, _page(metric, meaning, "the steady phase"))


def _decode(metric: str) -> Measure:
    unit, meaning = _METRICS[metric]

    def compute(obs: Observations) -> Reading:
        require_gpu(obs)
        values = [v for w in _decode_windows(obs) for v in _if_any(obs, w, metric)]
        return Reading(median(values), n=len(values))

    return Measure(f"gpu.{metric}.decode.p50", unit, compute, _page(metric, meaning, "decode windows"))


def _page(metric: str, meaning: str, where: str) -> str:
    return (
        f"Median of GPM's {metric} over {where}: {meaning}.\n\n"
        "Device-wide, other processes included. Missing before Hopper without a DCGM exporter, on GPUs that "
        "deny GPM, and when the model runs on the CPU. "
        "Cross-check: `nvidia-smi dmon --gpm-metrics 1,2,3,5,10`."
    )


def require_gpu(obs: Observations) -> None:
    if on_gpu.of(obs) == 0:
        raise NoValue(
            "the model runs on the CPU" if obs.facts.target.device else "no GPU here holds the model"
        )


def _if_any(obs: Observations, window: Window, metric: str) -> list[float]:
    try:
        return of_device(obs, window, metric)
    except NoValue:
        if window.name == "steady":
            raise
        return []


def _decode_windows(obs: Observations) -> list[Window]:
    """Stretches in which some request was between its first and last token; the phase when none is known."""
    phase = obs.phase("steady")
    of_device(obs, phase, "graphics_active")
    spans = sorted(
        (r.first_token_s, r.last_token_s)
        for r in obs.ok("steady")
        if r.first_token_s is not None and r.last_token_s is not None
    )
    merged: list[tuple[float, float]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return [Window(obs, "decode", a, b) for a, b in merged] or [phase]


DRAM, TENSOR = _decode("dram_active"), _decode("tensor_active")
BUSY, PCIE_RX = _decode("graphics_active"), _decode("pcie_rx_bytes_per_s")
SM = _decode("sm_active")


@signal("gpu.mem_used.max", unit="bytes")
def memory_used(obs: Observations) -> float:
    """Most GPU memory in use during the steady phase, all processes together. Cross-check: `nvidia-smi`."""
    require_gpu(obs)
    return max(of_device(obs, obs.phase("steady"), "mem_used_bytes"))


@signal("gpu.neighbours.max", unit="processes")
def neighbours(obs: Observations) -> float:
    """Most processes that computed on the server's GPU beside its own, in the steady phase.

    Missing where process ids of the GPU are not this host's (containers). Cross-check: `nvidia-smi`.
    """
    require_gpu(obs)
    return max(of_device(obs, obs.phase("steady"), "other_processes"))


@signal("gpu.others.busy.share", unit="share")
def others_busy(obs: Observations) -> Reading:
    """Share of the steady phase in which a kernel of another program was resident on the server's GPU.

    The driver's own samples by process, summed over the others; no measure of how much of the GPU they use,
    but kernels of two programs take turns. Missing where the driver tells nothing by process, and where
    process ids of the GPU are not this host's. Cross-check: `nvidia-smi pmon -s u`.
    """
    require_gpu(obs)
    values = obs.phase("steady").gauge("gpu.process", "util", who="others", gpu=device_label(obs))
    neighbours.of(obs)
    return Reading(min(1.0, sum(values) / len(values)), n=len(values))


_DECLARED = {
    "dram_active": DRAM,
    "tensor_active": TENSOR,
    "graphics_active": BUSY,
    "pcie_rx_bytes_per_s": PCIE_RX,
    "sm_active": SM,
}

SIGNALS = (
    on_gpu,
    memory_used,
    neighbours,
    others_busy,
    *(_steady(metric) for metric in _METRICS),
    *(_DECLARED.get(metric) or _decode(metric) for metric in _METRICS),
)
