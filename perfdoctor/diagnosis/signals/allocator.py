"""What torch's caching allocator asks of the driver; in a warm server next to nothing. Local models only."""

from __future__ import annotations

from perfdoctor.diagnosis.measure import signal
from perfdoctor.diagnosis.observations import Observations, ratio
from perfdoctor.diagnosis.signals import memory


@signal("allocator.calls_per_token", unit="calls/token")
def calls(obs: Observations) -> float:
    """Allocations and frees that reached the driver, per output token of the steady phase.

    Missing where this torch does not count them, and on a CPU. Cross-check: `torch.cuda.memory_stats()`.
    """
    window = obs.phase("steady")
    asked = window.change("torch", "device_allocs").amount + window.change("torch", "device_frees").amount
    return ratio(asked, memory.tokens(obs), "the number of tokens")


@signal("allocator.retries_per_s", unit="times/s")
def retries(obs: Observations) -> float:
    """How often the allocator had to flush its whole cache to serve one request, per second."""
    return obs.phase("steady").change("torch", "alloc_retries").rate


SIGNALS = (calls, retries)
