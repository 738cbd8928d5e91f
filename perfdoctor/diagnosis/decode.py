"""How a second of decoding divides into device time, launch gaps and waiting for a CPU.

Shares of decode time, from the most direct source at hand: the local server's profiled step, GPU counters,
what the pace of tokens implies for memory, and who holds the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perfdoctor.diagnosis.observations import NoValue, Observations, known
from perfdoctor.diagnosis.signals import cpu, gil, gpu, roof, step, transfer

UNASKED = 0.30  # as in launch-bound-decode
HOST_BUSY = 0.80  # as in launch-bound-decode; below it an idle device is not the serving thread's doing


@dataclass(frozen=True, slots=True)
class DecodeShares:
    """Shares by ledger row, summing to 1 at most; what is left belongs to nobody."""

    shares: Mapping[str, float]
    source: str


def decode_shares(obs: Observations) -> DecodeShares:
    """Never fails: with no source at all, decoding stays one undivided row."""
    for source in (_by_device_step, _by_cpu_step, _by_gpu_counters, _by_pace):
        try:
            return source(obs)
        except NoValue:
            continue
    return DecodeShares({"decode": 1.0}, "nothing here can divide it")


def _by_device_step(obs: Observations) -> DecodeShares:
    """Device time is the memory's as far as the step's bytes need it, and small or compute kernels beyond.

    The rest is the transfer's while weights come over PCIe, else a launch gap.
    """
    found = _by_step(obs, step.device.of(obs), "kernel time", undivided="decode")
    if not _at_least(transfer.OFFLOADED, lambda: transfer.per_step.of(obs)):
        return found
    shares = dict(found.shares)
    shares["decode.transfer"] = shares.pop("decode.launch_gap")
    return DecodeShares(shares, f"{found.source}; PCIe traffic")


def _by_cpu_step(obs: Observations) -> DecodeShares:
    """The same with the operators that do arithmetic for kernels; without the model's size all is theirs."""
    return _by_step(obs, step.kernel.of(obs), "operators that do arithmetic", undivided="decode.compute")


def _by_step(obs: Observations, busy: float, what: str, undivided: str) -> DecodeShares:
    gap = {"decode.launch_gap": 1 - busy}
    source = f"profiled step: {what} against the step's length"
    try:
        memory = min(busy, _memory_s(obs) / step.wall_s(obs))
    except NoValue:
        return DecodeShares({undivided: busy} | gap, source)
    return DecodeShares({"decode.memory": memory, "decode.compute": busy - memory} | gap, source)


def _memory_s(obs: Observations) -> float:
    """The shortest time in which memory at its best delivers a step's bytes."""
    return roof.step_bytes.of(obs) / roof.achievable_rate.of(obs)


def _by_gpu_counters(obs: Observations) -> DecodeShares:
    """Idle device time is the transfer's while weights come over PCIe, a launch gap only while the serving
    thread is busy; else it is nobody's."""
    busy = min(1.0, gpu.BUSY.of(obs))
    memory = min(busy, gpu.DRAM.of(obs) / gpu.DRAM_FULL)
    shares = {"decode.memory": memory, "decode.compute": busy - memory}
    if _at_least(transfer.OFFLOADED, lambda: transfer.per_step.of(obs)):
        shares["decode.transfer"] = 1 - busy
    elif _at_least(HOST_BUSY, lambda: cpu.busy.of(obs)):
        shares["decode.launch_gap"] = 1 - busy
    return DecodeShares(shares, "GPU counters, medians of the decode windows")


def _by_pace(obs: Observations) -> DecodeShares:
    """Memory by the implied traffic, launch gap by the interpreter, the rest undivided."""
    memory = min(1.0, roof.memory.of(obs))
    shares = {"decode.memory": memory}
    held = known(lambda: gil.held.of(obs))
    unasked = known(lambda: gil.idle.of(obs)) or 0.0  # held by a thread that does not serve
    if held is not None and unasked < UNASKED and _at_least(HOST_BUSY, lambda: cpu.busy.of(obs)):
        shares["decode.launch_gap"] = min(1 - memory, held)
    shares["decode"] = max(0.0, 1 - sum(shares.values()))
    return DecodeShares(shares, "bytes that the pace of tokens implies, over what memory can deliver")


def _at_least(limit: float, source: Callable[[], float]) -> bool:
    value = known(source)
    return value is not None and value >= limit
