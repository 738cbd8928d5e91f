"""Traffic between host and GPU: launches make a little of it, weights kept on the host make gigabytes."""

from __future__ import annotations

from perfdoctor.diagnosis.measure import signal
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.diagnosis.signals import gpu, requests, roof

OFFLOADED = 0.05  # of a step's weights; launches and tokens alone send next to nothing
LAUNCH_TRAFFIC = 100e6  # bytes/s; measured on an H200: 46-78 MiB/s of eager decode


@signal("transfer.per_step.share", unit="share")
def per_step(obs: Observations) -> float:
    """Bytes sent to the GPU in one decode step, beyond what launches make, as a share of the step's weights.

    Near 1 where all weights are sent anew for each token. Missing without GPM's PCIe counter or the model's
    size. Cross-check: `nvidia-smi dmon -s t`.
    """
    rate = gpu.PCIE_RX.of(obs)
    step_s = requests.STEADY_TPOT.of(obs)
    if step_s <= 0:
        raise NoValue("the pace of tokens was read as nothing")
    return max(0.0, rate - LAUNCH_TRAFFIC) * step_s / roof.step_bytes.of(obs)


SIGNALS = (per_step,)
