"""One decode step of the local server, taken apart by a short profiler window outside the statistics."""

from __future__ import annotations

from perfdoctor.diagnosis.measure import Measure, signal
from perfdoctor.diagnosis.observations import NoValue, Observations

DISTURBED = 1.25  # guess: a step that is all arithmetic reads up to 1.1 with the profiler's own time


def step_value(obs: Observations, metric: str) -> float:
    """A mean over the profiled steps."""
    for sample in reversed(obs.samples("step")):
        value = sample.values.get(metric)
        if value is not None:
            return value
    raise NoValue(f"the profiled step holds no {metric}")


def wall_s(obs: Observations) -> float:
    """The mean decode step without a profiler; a step of no length is no step."""
    found = step_value(obs, "wall_s")
    if found <= 0:
        raise NoValue("the profiled step took no time")
    return found


def _mean(name: str, metric: str, unit: str, page: str) -> Measure:
    return Measure(name, unit, lambda obs: step_value(obs, metric), page)


@signal("step.wall", unit="s")
def wall(obs: Observations) -> float:
    """Mean decode step of the local server without a profiler, in seconds. Missing for other servers."""
    return wall_s(obs)


@signal("step.device.share", unit="share")
def device(obs: Observations) -> float:
    """Share of a decode step in which any kernel ran on the GPU: the union of kernel times over the step.

    Kernel times come from the profiled steps, the step's length from unprofiled ones, since profilers inflate
    launches and not kernels. Missing on a CPU. Cross-check: Nsight Systems, GPU row.
    """
    return min(1.0, step_value(obs, "device_s") / wall_s(obs))


@signal("step.kernel.share", unit="share")
def kernel(obs: Observations) -> float:
    """CPU only: share of a decode step inside the operators that do the arithmetic; the rest is overhead.

    An upper bound, since each operator's time contains a little of the profiler's. Missing on a GPU, and when
    operators took far longer than whole steps do without a profiler: they waited for a CPU that others used.
    """
    share = step_value(obs, "kernel_s") / wall_s(obs)
    if share > DISTURBED:
        raise NoValue(
            f"profiled operators took {share:.1f} times an unprofiled step: other work used the CPU"
        )
    return min(1.0, share)


@signal("step.launch_gap.share", unit="share")
def launch_gap(obs: Observations) -> float:
    """Share of a decode step in which the device, or on a CPU the arithmetic, waits for host code."""
    try:
        return 1 - device.of(obs)
    except NoValue:
        return 1 - kernel.of(obs)


SIGNALS = (
    wall,
    device,
    kernel,
    launch_gap,
    _mean("step.launches", "launches", "launches/token", "Kernel launches per decode step. GPU only."),
    _mean("step.ops", "ops", "ops/token", "Operators dispatched per decode step."),
    _mean("step.syncs", "syncs", "syncs/token", "Waits of the host for the GPU per decode step. GPU only."),
    _mean("step.kernel.mean", "kernel_mean_s", "s", "Mean length of a GPU kernel; 2.6 µs in eager decode."),
)
