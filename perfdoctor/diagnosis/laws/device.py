"""Laws of the machine: bandwidth, room for weights, bytes of files, time of the device."""

from __future__ import annotations

from perfdoctor import units
from perfdoctor.diagnosis.laws._need import ROUNDING, need
from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.diagnosis.signals import step
from perfdoctor.model import Violation

CPU_COPY_SLACK = 1.5  # reading alone outruns the calibrated copy, which also writes
QUEUE_SLACK = 0.5  # guess: means of rate, wait and queue are not those of one instant; discards are left out
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


def cache_fits(obs: Observations, table: Table) -> Violation | None:
    """The KV cache that a server says it has must fit into its device."""
    tokens, per_token = need(table, "engine.kv_tokens"), obs.facts.target.kv_bytes_per_token
    host = obs.facts.host
    room = host.gpus[0].memory_bytes if host.gpus else host.memory_bytes
    if not per_token or not room or tokens * per_token <= room * len(host.gpus or (1,)):
        return None
    return Violation(
        law="L4",
        what=f"a KV cache of {tokens:.0f} tokens of {units.size_bytes(per_token)} each would need "
        f"{units.size_bytes(tokens * per_token)}, more than the device has",
        likely="the log is of another server or model, or the cache holds narrower numbers than the weights",
        stops=("kv-cache",),
    )


def disk_queue(obs: Observations, table: Table) -> Violation | None:
    """Little's law at a disk, where a tool printed rate, wait and queue."""
    seen = obs.phase("steady")
    rows = ("reads_per_s", "r_await_s", "writes_per_s", "w_await_s", "aqu_sz")
    reads, r_await, writes, w_await, queue = (_mean(seen.gauge("disk", name)) for name in rows)
    computed = reads * r_await + writes * w_await
    if abs(computed - queue) <= QUEUE_SLACK * max(computed, queue) + 0.1:
        return None
    return Violation(
        law="L5",
        what=f"a disk queue of {queue:.2f} requests, but rate times wait make {computed:.2f}",
        likely="a column was read as another one, or seconds as milliseconds",
        stops=("disk-io",),
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


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


LAWS = (bandwidth, weights_fit, cache_fits, disk_queue, file_was_read, device_time)
