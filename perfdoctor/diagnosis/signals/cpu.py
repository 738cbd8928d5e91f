"""The server's CPU time: its serving thread, the host around it, and quotas. From schedstat and cgroups."""

from __future__ import annotations

from dataclasses import dataclass

from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, Window, ratio

SLICE_S = 1.0  # threads are read about once a second
LEAST_SEEN = 0.5  # share of the phase in which threads must have been seen


@dataclass(frozen=True, slots=True)
class _Serving:
    oncpu_s: float = 0.0
    waited_s: float = 0.0
    seen_s: float = 0.0
    slices: int = 0


def _serving(window: Window) -> _Serving:
    """The busiest thread of each second, summed. A server that serves in changing threads of a pool has
    no single busy thread, yet somebody is busy all the time."""
    oncpu = window.series("cpu.thread", "oncpu_s", "pid", "tid")
    waited = window.series("cpu.thread", "runq_wait_s", "pid", "tid")
    count = max(1, min(400, round(window.seconds / SLICE_S)))
    length = window.seconds / count
    total = _Serving()
    for i in range(count):
        start, end = window.start_s + i * length, window.start_s + (i + 1) * length
        gains = {key: gain for key, s in oncpu.items() if (gain := s.gain(start, end))}
        if not gains:
            continue
        busiest = max(gains, key=lambda k: gains[k].rate)
        wait = waited[busiest].gain(start, end) if busiest in waited else None
        total = _Serving(
            total.oncpu_s + gains[busiest].amount,
            total.waited_s + (wait.amount if wait else 0.0),
            total.seen_s + gains[busiest].span_s,
            total.slices + 1,
        )
    if total.seen_s < LEAST_SEEN * window.seconds:
        raise NoValue("the server's threads were seen for less than half of the steady phase")
    return total


@signal("cpu.serving.oncpu.share", unit="share")
def oncpu(obs: Observations) -> Reading:
    """Share of the steady phase the server's busiest thread was on a CPU, 0-1.

    Near 1 in a server that is held up by its own host code, and also while it spins for a GPU, so look at
    the GPU first. Missing when the server's threads cannot be read. Cross-check: `top -H -p PID`.
    """
    found = _serving(obs.phase("steady"))
    return Reading(min(1.0, found.oncpu_s / found.seen_s), n=found.slices)


@signal("cpu.serving.busy.share", unit="share")
def busy(obs: Observations) -> Reading:
    """The same, as a share of the time in which it was not kept waiting for a CPU: it never slept.

    Other programs on its cores, the load generator for one, lower on-CPU time and not this.
    """
    found = _serving(obs.phase("steady"))
    free_s = found.seen_s - found.waited_s
    if free_s <= 0:
        raise NoValue("the serving thread waited for a CPU all the time")
    return Reading(min(1.0, found.oncpu_s / free_s), n=found.slices)


@signal("cpu.serving.runq_wait.share", unit="share")
def runq_wait(obs: Observations) -> Reading:
    """Share of the steady phase that busiest thread was ready to run but had no CPU, 0-1; quotas included.

    Missing like `cpu.serving.oncpu.share`. Cross-check: second field of /proc/PID/task/TID/schedstat.
    """
    found = _serving(obs.phase("steady"))
    return Reading(min(1.0, found.waited_s / found.seen_s), n=found.slices)


@signal("cpu.host.idle.share", unit="share")
def host_idle(obs: Observations) -> float:
    """Share of all the host's CPU time left unused in the steady phase, 0-1. Cross-check: `vmstat 1`."""
    window = obs.phase("steady")
    busy = window.change("cpu", "host_busy_s")
    cores = max(window.gauge("cpu", "host_cores"))
    return max(0.0, 1 - ratio(busy.rate, cores, "the number of cores"))


@signal("cpu.others.share", unit="share")
def others(obs: Observations) -> float:
    """CPU time that neither the server nor the load generator used, as a share of the host's, 0-1.

    Missing when the server's processes cannot be read. Cross-check: `top`, without those two.
    """
    window = obs.phase("steady")
    cores = max(window.gauge("cpu", "host_cores"))
    rest = window.change("cpu", "host_busy_s").rate - window.change("cpu", "oncpu_s").rate
    client = obs.facts.client
    ours = (client.cpu_share or 0.0) * client.workers
    return max(0.0, ratio(rest - ours, cores, "the number of cores"))


@signal("cpu.quota.throttled.share", unit="share")
def throttled(obs: Observations) -> Reading:
    """Share of CFS periods in which the server's group ran out of its CPU quota; 0 where it has none.

    Missing when the group cannot be read. Cross-check: nr_throttled over nr_periods in cpu.stat.
    """
    window = obs.phase("steady")
    periods = window.change("cpu", "quota_periods").amount
    if periods <= 0:  # a group without a quota counts no periods
        return Reading(0.0, source="the group has no CPU quota")
    return Reading(min(1.0, window.change("cpu", "quota_throttled").amount / periods))


SIGNALS = (oncpu, busy, runq_wait, host_idle, others, throttled)
