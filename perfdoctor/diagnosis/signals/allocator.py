"""What torch's caching allocator asks of the driver, and what it holds in pieces that nobody can use.

From a local model's own statistics, or from a table or an error of torch that was pasted.
"""

from __future__ import annotations

from collections.abc import Callable

from perfdoctor.diagnosis.measure import signal
from perfdoctor.diagnosis.observations import NoValue, Observations, ratio
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


@signal("allocator.unallocated.share", unit="share")
def unallocated(obs: Observations) -> float:
    """Share of the memory that torch holds on the GPU and no tensor uses, at its highest, 0-1.

    Large in a server at work: its cache does not fit what is asked for. Missing for servers that do not tell.
    Cross-check: `torch.cuda.memory_summary()`, reserved less allocated, over reserved.
    """
    return max(_of_reserved(obs, "allocated_bytes", lambda used, held: 1 - used / held))


@signal("allocator.inactive_split.share", unit="share")
def inactive_split(obs: Observations) -> float:
    """Share of what torch holds that lies in pieces beside blocks in use, lost to all others: fragmentation.

    At its highest, 0-1. Missing like `allocator.unallocated.share`. Cross-check: non-releasable memory.
    """
    return max(_of_reserved(obs, "inactive_split_bytes", lambda split, held: split / held))


@signal("allocator.retries.total", unit="times")
def retries_total(obs: Observations) -> float:
    """Allocations that only succeeded after the whole cache was flushed, since the process began.

    Says that it happens, not how often now. Cross-check: `torch.cuda.memory_summary()`, its second line.
    """
    return max(obs.phase("steady").gauge("torch", "retries_total"))


@signal("allocator.oom.room", unit="x")
def room(obs: Observations) -> float:
    """Memory that was free or unused in torch's cache when an allocation failed, over what was asked for.

    At 1 and above there was enough, in pieces: fragmentation. Below, the memory was really used up. The
    closest of several errors. Missing without the error's text, or where it names only a part.
    """
    found = []
    for sample in obs.samples("torch.oom"):
        asked, free = sample.values.get("asked_bytes"), sample.values.get("free_bytes")
        unused = sample.values.get("unallocated_bytes")
        if asked and free is not None and unused is not None:
            found.append((free + unused) / asked)
    if not found:
        raise NoValue("no out-of-memory error here tells what was asked for, free and unused")
    return max(found)


def _of_reserved(obs: Observations, metric: str, share: Callable[[float, float], float]) -> list[float]:
    """Of each reading that tells both; a cache that holds nothing has no shares."""
    window = obs.phase("steady")
    found = []
    for sample in obs.samples("torch"):
        value, held = sample.values.get(metric), sample.values.get("reserved_bytes")
        if value is not None and held and window.start_s <= sample.at_s <= window.end_s:
            found.append(share(value, held))
    if not found:
        raise NoValue(f"torch does not report {metric} and reserved_bytes in the steady phase")
    return found


SIGNALS = (calls, retries, unallocated, inactive_split, retries_total, room)
