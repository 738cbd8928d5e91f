"""Lowered GPU clocks: heat is a fault, the power cap of a dense matrix product is not.

Bits of NVML's clock event reasons (nvml.h): 0x20 and 0x40 heat, 0x8 and 0x80 the board's own protection,
0x4 the power cap.
"""

from __future__ import annotations

from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, median
from perfdoctor.diagnosis.signals import gpu

THERMAL, PROTECTION, POWER_CAP = 0x20 | 0x40, 0x8 | 0x80, 0x4


def _share(obs: Observations, bits: int) -> Reading:
    gpu.require_gpu(obs)
    found = gpu.of_device(obs, obs.phase("steady"), "clock_event_reasons")
    return Reading(sum(bool(int(v) & bits) for v in found) / len(found), n=len(found))


@signal("gpu.clock.thermal.share", unit="share")
def thermal(obs: Observations) -> Reading:
    """Share of readings in which the GPU lowered its clocks because of heat or to protect the board, 0-1.

    Missing where the driver hides the reasons (MIG, some virtual GPUs). Cross-check:
    `nvidia-smi -q -d PERFORMANCE`.
    """
    return _share(obs, THERMAL | PROTECTION)


@signal("gpu.clock.power_cap.share", unit="share")
def power_cap(obs: Observations) -> Reading:
    """Share of readings in which the power limit lowered the clocks, 0-1: normal for dense matrix products.

    Missing like `gpu.clock.thermal.share`.
    """
    return _share(obs, POWER_CAP)


@signal("gpu.clock.lost.share", unit="share")
def lost(obs: Observations) -> Reading:
    """How much slower than its highest clock the GPU ran while it worked: 1 - median clock over maximum.

    Missing without the maximum. Cross-check: `nvidia-smi -q -d CLOCK`.
    """
    gpu.require_gpu(obs)
    label = gpu.device_label(obs)
    best = next((g.sm_clock_max_mhz for g in obs.facts.host.gpus if str(g.index) == label), None)
    if not best:
        raise NoValue("the GPU's highest clock is not known")
    found = gpu.of_device(obs, obs.phase("steady"), "sm_clock_mhz")
    return Reading(max(0.0, 1 - median(found) / best), n=len(found))


SIGNALS = (thermal, power_cap, lost)
