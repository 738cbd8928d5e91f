"""Laws of the device: bandwidth, room for weights and cache, time."""

from __future__ import annotations

from perfdoctor import units
from perfdoctor.diagnosis.laws._law import ROUNDING, Law, need
from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue, Observations, known, ratio
from perfdoctor.diagnosis.signals import start, step
from perfdoctor.model import Violation

CPU_COPY_SLACK = 1.5  # reading alone outruns the calibrated copy, which also writes
WIDTHS = (0.25, 0.5, 1.0, 2.0)  # of the cache's numbers, over those of the weights
CACHE_ROUNDING = 1.1  # blocks, and what the server keeps of its budget for itself
CACHE_BYTES = 64e6  # guess: weights smaller than this may stay in a CPU's caches


def bandwidth(obs: Observations, table: Table) -> Violation | None:
    """Memory delivers no more than its bandwidth."""
    rate = need(table, "roof.implied.rate")
    if table["gpu.used"].value:
        limit, what = need(table, "roof.physical.rate"), "the datasheet's"
    elif need(table, "step.bytes") < CACHE_BYTES:
        raise NoValue("weights this small may stay in the caches of a CPU")
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
        raise NoValue("the size of the loaded weights, or where they are, is not known")
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
    """A KV cache of so many tokens fits into the device beside the weights."""
    tokens, per_token = need(table, "engine.kv_tokens"), _shape_bytes(obs)
    host = obs.facts.host
    room = sum(gpu.memory_bytes or 0 for gpu in host.gpus) if host.gpus else host.memory_bytes
    if not room:
        raise NoValue("the device's memory is not known")
    asked = tokens * per_token + (obs.facts.target.weights_bytes or 0)
    if asked <= room:
        return None
    return Violation(
        law="L4",
        what=f"a KV cache of {tokens:.0f} tokens of {units.size_bytes(per_token)} and the weights would need "
        f"{units.size_bytes(asked)}, and the device has {units.size_bytes(room)}",
        likely="the log is of another server or model, or the cache holds narrower numbers than the weights",
        stops=("kv-cache",),
    )


def cache_has_the_models_shape(obs: Observations, table: Table) -> Violation | None:
    """The KV cache's bytes over its tokens are those of the model's shape.

    Or half, a quarter or twice of them, where it holds numbers of another width than the weights.
    """
    tokens, per_token = need(table, "engine.kv_tokens"), _shape_bytes(obs)
    if known(lambda: start.told(obs, "workers")):
        raise NoValue("several workers have a part of the cache each")
    said = ratio(start.told(obs, "kv_bytes"), tokens, "the number of tokens in the KV cache")
    if any(1 / CACHE_ROUNDING <= said / (per_token * width) <= CACHE_ROUNDING for width in WIDTHS):
        return None
    return Violation(
        law="L4",
        what=f"the server's KV cache has {units.size_bytes(said)} for a token, the model's shape makes "
        f"{units.size_bytes(per_token)}",
        likely="the log is of another model, or its layers do not all keep every token (a sliding window)",
        stops=("kv-cache",),
    )


def _shape_bytes(obs: Observations) -> int:
    per_token = obs.facts.target.kv_bytes_per_token
    if not per_token:
        raise NoValue("the bytes of a token in the KV cache are not known: they take the model's shape")
    return per_token


def device_time(obs: Observations, table: Table) -> Violation | None:
    """Device time of a step lies within the step, and so do the operators of one thread."""
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


LAWS = (
    Law("L2", bandwidth),
    Law("L3", weights_fit),
    Law("L4", cache_fits),
    Law("L4", cache_has_the_models_shape),
    Law("L7", device_time),
)
