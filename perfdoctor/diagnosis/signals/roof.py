"""Decoding against what the memory can deliver: bytes a step must read, over the time it took."""

from __future__ import annotations

from perfdoctor.diagnosis import gpus
from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, known, ratio
from perfdoctor.diagnosis.signals import gpu, server
from perfdoctor.diagnosis.signals.requests import STEADY_TPOT

TOKENS_PER_STEP_MAX = 1.2  # above it the server emits several tokens a step, so tokens are no steps


@signal("step.bytes", unit="bytes")
def step_bytes(obs: Observations) -> Reading:
    """Bytes one decode step must read: the weights it uses, once, and the KV cache of every sequence.

    Missing when the model's size is not known. The KV part is left out where prompt lengths or the cache's
    layout are unknown; below 2,000 tokens it is under 2 % for one sequence of a 1.5B model.
    """
    target = obs.facts.target
    if target.roof_refused:
        raise NoValue(target.roof_refused)
    if not target.step_bytes:
        raise NoValue("the bytes a decode step reads are unknown: the server does not tell its model's size")
    kv = 0.0
    tokens = known(lambda: server.context.of(obs))
    if target.kv_bytes_per_token and tokens is not None:
        kv = target.kv_bytes_per_token * tokens * (known(lambda: server.batch.of(obs)) or 1.0)
    return Reading(target.step_bytes + kv, source="weights and KV cache" if kv else "weights")


@signal("roof.implied.rate", unit="bytes/s")
def implied_rate(obs: Observations) -> float:
    """Memory traffic that the pace of tokens implies: bytes per step over the mean time per token.

    One step gives every running request one token, so this holds for any batch. Missing when the model's
    size is unknown or the server emits several tokens a step (speculative decoding).
    """
    per_step = _tokens_per_step(obs)
    if per_step is not None and per_step > TOKENS_PER_STEP_MAX:
        raise NoValue(f"the server emits {per_step:.1f} tokens a step, so tokens are no measure of steps")
    return ratio(step_bytes.of(obs), STEADY_TPOT.of(obs), "the time per token")


def _tokens_per_step(obs: Observations) -> float | None:
    """Output tokens per step and running request, where the server counts steps."""

    def compute() -> float:
        window = obs.phase("steady")
        steps = window.change("engine", "steps").amount
        if steps <= 0:
            raise NoValue("the server counted no steps")
        per_step = window.change("engine", "output_tokens").amount / steps
        return ratio(per_step, server.batch.of(obs), "the batch")

    return known(compute)


@signal("roof.physical.rate", unit="bytes/s")
def physical_rate(obs: Observations) -> Reading:
    """Memory bandwidth of the GPU by its datasheet. Missing on a CPU and for GPUs not in data/gpus.toml."""
    if gpu.on_gpu.of(obs) == 0:
        raise NoValue("host memory has no datasheet value here, only a calibrated one")
    sheet = gpus.datasheet(gpu_name(obs))
    return Reading(sheet.bandwidth_bytes_per_s, source=sheet.source)


@signal("roof.achievable.rate", unit="bytes/s")
def achievable_rate(obs: Observations) -> Reading:
    """Memory bandwidth in reach: calibrated on this machine, else the datasheet times 0.89.

    On a CPU what all cores reach by reading alone, since a decode writes next to nothing; where only a copy
    was calibrated, that. On a GPU a device-to-device copy.
    """
    if gpu.on_gpu.of(obs) == 0:
        return _host_ceiling(obs)
    copy = obs.facts.calibration.get("gpu_copy_bytes_per_s")
    if copy and copy > 0:
        return Reading(copy, source="calibrated copy on this GPU")
    return Reading(physical_rate.of(obs) * gpu.DRAM_FULL, source="datasheet x 0.89")


def _host_ceiling(obs: Observations) -> Reading:
    if obs.facts.target.remote:
        raise NoValue("the server's host was not calibrated")
    for kind in ("read", "copy"):
        rate = obs.facts.calibration.get(f"{kind}_bytes_per_s")
        if rate and rate > 0:
            return Reading(rate, source=f"calibrated {kind} on this machine")
    raise NoValue("this machine's memory ceiling was not calibrated")


@signal("roof.physical.share", unit="share")
def physical(obs: Observations) -> float:
    """Implied memory traffic over the datasheet's bandwidth. Missing on a CPU."""
    return implied_rate.of(obs) / physical_rate.of(obs)


@signal("roof.memory.share", unit="share")
def memory(obs: Observations) -> float:
    """Implied memory traffic over what is in reach; near 1 no software can decode faster.

    Exceeds 1 on a CPU where weights fit in caches, or where the calibration was disturbed.
    """
    return implied_rate.of(obs) / achievable_rate.of(obs)


@signal("roof.compute.share", unit="share")
def compute(obs: Observations) -> float:
    """Arithmetic that the pace of tokens implies, over the GPU's tensor rate. Missing on a CPU."""
    flops = obs.facts.target.step_flops
    if not flops:
        raise NoValue("the arithmetic of a decode step is unknown")
    if gpu.on_gpu.of(obs) == 0:
        raise NoValue("the CPU's arithmetic rate was not calibrated")
    together = known(lambda: server.batch.of(obs)) or 1.0
    rate = ratio(flops * together, STEADY_TPOT.of(obs), "the time per token")
    return rate / gpus.datasheet(gpu_name(obs)).tensor_flops_per_s


def gpu_name(obs: Observations) -> str:
    """Of the GPU that runs the model; of the only one where no sample tells."""
    found = obs.facts.host.gpus
    if not found:
        raise NoValue("the GPU's name is unknown")
    label = known_label(obs)
    return next((g.name for g in found if str(g.index) == label), found[0].name)


def known_label(obs: Observations) -> str | None:
    try:
        return gpu.device_label(obs)
    except NoValue:
        return (obs.facts.target.device or "").partition(":")[2] or None


@signal("gpu.foreign_dram.share", unit="share")
def foreign(obs: Observations) -> float:
    """Memory traffic of the GPU beyond what the pace of tokens implies, as a share of its peak, 0-1.

    Some of it is the model's own, activations for one; much of it is another program's. Missing like
    `gpu.dram_active.decode.p50` and `roof.physical.share`.
    """
    return max(0.0, gpu.DRAM.of(obs) - physical.of(obs))


SIGNALS = (
    step_bytes,
    implied_rate,
    physical_rate,
    achievable_rate,
    physical,
    memory,
    compute,
    foreign,
)
