"""Laws of the machine: bandwidth, room for weights, bytes of files, time of the device."""

from __future__ import annotations

from perfdoctor import units
from perfdoctor.diagnosis.laws._need import ROUNDING, need
from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.diagnosis.signals import step
from perfdoctor.model import Violation

CPU_COPY_SLACK = 1.5  # reading alone outruns the calibrated copy, which also writes
CACHE_BYTES = 64e6  # guess: weights smaller than this may stay in a CPU's caches


def bandwidth(obs: Observations, table: Table) -> Violation | None:
    """Memory cannot deliver more than its bandwidth."""
    rate = need(table, "roof.implied.rate")
    if table["gpu.used"].value:
        limit, what = need(table, "roof.physical.rate"), "the datasheet's"
    elif need(table, "step.bytes") < CACHE_BYTES:
        return None
    else:
        limit, what = need(table, "roof.achievable.rate") * CPU_COPY_SLACK, "1.5 times the copy's"
    if rate <= limit:
        return None
    return Violation(
        law="L2",
        what=f"the pace of tokens implies {units.quantity(rate, 'bytes/s')}, more than {what} "
        f"{units.quantity(limit, 'bytes/s')}",
        likely="the model is smaller or of a narrower dtype than assumed, or a step emits several tokens",
        stops=("memory-bandwidth", "launch-overhead"),
    )


def weights_fit(obs: Observations, table: Table) -> Violation | None:
    """A loaded model takes at least the room of its weights."""
    weights = obs.facts.target.weights_bytes
    if not weights or not obs.facts.target.device:
        return None
    if table["gpu.used"].value:
        used = need(table, "gpu.mem_used.max")
    else:
        used = max(obs.phase("steady").gauge("memory", "rss_bytes"))
    if used >= weights / ROUNDING:
        return None
    return Violation(
        law="L3",
        what=f"{units.size_bytes(used)} of memory in use, but the weights are {units.size_bytes(weights)}",
        likely="another dtype or model than reported, or the wrong process or device was watched",
        stops=("memory-bandwidth", "launch-overhead"),
    )


def file_was_read(obs: Observations, table: Table) -> Violation | None:
    """A cold file must come from storage once. None at all: a file system whose reads are not counted."""
    size, read = obs.facts.target.file_bytes, need(table, "load.read.bytes")
    cold = (size or 0) * (1 - need(table, "load.file_resident.share"))
    if not read or read >= cold / 2:
        return None
    return Violation(
        law="L6",
        what=f"{units.size_bytes(read)} read, but {units.size_bytes(cold)} of the files were not cached",
        likely="another process read the file, or the samples do not describe this load",
        stops=("disk-io",),
    )


def device_time(obs: Observations, table: Table) -> Violation | None:
    """The union of kernel times cannot exceed the time in which they ran; nor can operators of one thread."""
    load_free = step.step_value(obs, "profiled_wall_s")
    for name in ("device_s", "kernel_s"):
        try:
            busy = step.step_value(obs, name)
        except NoValue:
            continue
        if busy > load_free * ROUNDING:
            return Violation(
                law="L7",
                what=f"{units.seconds(busy)} of device time in a step of {units.seconds(load_free)}",
                likely="kernels of several streams were added up, or steps were counted wrongly",
                stops=("launch-overhead", "memory-bandwidth"),
            )
    return None


LAWS = (bandwidth, weights_fit, file_was_read, device_time)
