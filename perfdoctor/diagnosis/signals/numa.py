"""Threads that run far from the GPU that they feed."""

from __future__ import annotations

from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import Observations


@signal("numa.far.share", unit="share")
def far(obs: Observations) -> Reading:
    """Share of the server's CPU time on another NUMA node than its GPU's, over the steady phase.

    Missing, as not applicable, on a host of one node or without a GPU; what it costs only an A/B run under
    numactl tells. Cross-check: `ps -L -o psr= -p PID` against `nvidia-smi topo -m`.
    """
    values = obs.phase("steady").gauge("numa", "far")
    return Reading(sum(values) / len(values), n=len(values))


SIGNALS = (far,)
