"""Memory that does not stay: pages dropped and read again while serving, swapping, waits for storage.

The refault counter is the whole host's; that the server's own threads were blocked is a reading of its own,
and a rule needs both.
"""

from __future__ import annotations

from perfdoctor import stats
from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, ratio


def tokens(obs: Observations) -> float:
    """Output tokens of the steady phase."""
    window = obs.phase("steady")
    stamps = [
        (r.output_tokens or len(r.token_at_s)) / len(r.token_at_s)
        for r in obs.requests
        if r.token_at_s
        for at in r.token_at_s
        if window.start_s <= at <= window.end_s
    ]
    if not stamps:
        raise NoValue("no token arrived in the steady phase")
    return sum(stamps)


@signal("memory.refault.share", unit="share")
def refaults(obs: Observations) -> float:
    """File pages that were dropped and had to be read again, per output token, as a share of the weights.

    Every token touches all weights, so a share that does not fit in memory is read again for each. Major
    faults do not show it: one of them may read megabytes ahead. Missing without the weights' size. May be
    another program's: the counter is the host's. Cross-check: `grep workingset_refault_file /proc/vmstat`.
    """
    weights = obs.facts.target.weights_bytes or obs.facts.target.file_bytes
    if not weights:
        raise NoValue("the size of the weights is not known")
    gained = obs.phase("steady").change("memory", "refault_file_bytes").amount
    return gained / tokens(obs) / weights


@signal("memory.swap_in.rate", unit="bytes/s")
def swap_in(obs: Observations) -> float:
    """Memory brought back from swap in the steady phase, whole host. Cross-check: `vmstat 1`, column si."""
    return obs.phase("steady").change("memory", "swap_in_bytes").rate


@signal("memory.psi_full.share", unit="share")
def pressure(obs: Observations) -> float:
    """Share of the steady phase in which every task that had work waited for memory, 0-1.

    Missing without PSI. Cross-check: line `full` of /proc/pressure/memory.
    """
    return min(1.0, obs.phase("steady").change("memory", "psi_full_s").rate)


@signal("io.blocked.share", unit="share")
def blocked(obs: Observations) -> Reading:
    """Share of the steady phase in which the server's threads waited for storage, 0-1.

    From the kernel's delay accounting, the tree's threads added up and cut at 1; where that is off, from how
    often some thread was found in uninterruptible sleep. Missing when the threads cannot be read.
    Cross-check: `ps -L -o stat= -p PID`.
    """
    window = obs.phase("steady")
    try:
        return Reading(min(1.0, window.change("io", "blkio_delay_s").rate), source="delay accounting")
    except NoValue:
        found = window.gauge("io", "blocked_threads")
        share = stats.mean([float(v >= 1) for v in found]) or 0.0
        return Reading(share, n=len(found), source="threads found in uninterruptible sleep")


@signal("io.read.per_token", unit="bytes")
def read_per_token(obs: Observations) -> float:
    """Bytes the server's processes had fetched from storage, per output token of the steady phase."""
    gained = obs.phase("steady").change("io", "process_read_bytes").amount
    return ratio(gained, tokens(obs), "the number of tokens")


SIGNALS = (refaults, swap_in, pressure, blocked, read_per_token)
