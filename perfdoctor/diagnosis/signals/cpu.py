"""The server's CPU time: its serving thread, the host around it, and quotas. From schedstat and cgroups."""

from __future__ import annotations

from dataclasses import dataclass

from perfdoctor import stats
from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, Window, known, ratio

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
    told = known(lambda: stats.mean(window.gauge("cpu", "host_idle_share")))
    if told is not None:
        return told
    busy = window.change("cpu", "host_busy_s")
    cores = max(window.gauge("cpu", "host_cores"))
    return max(0.0, 1 - ratio(busy.rate, cores, "the number of cores"))


@signal("cpu.steal.share", unit="share")
def steal(obs: Observations) -> float:
    """Share of all the host's CPU time that the hypervisor gave to others in the steady phase, 0-1.

    Time the host wanted and did not get: more than a little means a machine sold to too many. Cross-check:
    `vmstat 1`, column st.
    """
    window = obs.phase("steady")
    told = known(lambda: stats.mean(window.gauge("cpu", "host_steal_share")))
    if told is not None:
        return told
    cores = max(window.gauge("cpu", "host_cores"))
    return ratio(window.change("cpu", "host_steal_s").rate, cores, "the number of cores")


@signal("cpu.runnable.mean", unit="tasks")
def runnable(obs: Observations) -> Reading:
    """Tasks of the host that ran or waited for a CPU, mean over the steady phase; beyond its cores they wait.

    Only from pasted output. Cross-check: `vmstat 1`, column r.
    """
    found = obs.phase("steady").gauge("cpu", "host_runnable")
    return Reading(stats.mean(found) or 0.0, n=len(found))


@signal("cpu.core.busiest.share", unit="share")
def busiest_core(obs: Observations) -> Reading:
    """How busy the busiest single CPU was, mean over the steady phase, 0-1.

    Near 1 beside an idle host is one thread that has all the work. Threads move between CPUs, so it may read
    less. Only from pasted output. Cross-check: `mpstat -P ALL 1`.
    """
    window = obs.phase("steady")
    window.gauge("cpu.core", "busy_share")
    at: dict[float, float] = {}
    for sample in obs.samples("cpu.core"):
        value = sample.values.get("busy_share")
        if value is not None and window.start_s <= sample.at_s <= window.end_s:
            at[sample.at_s] = max(at.get(sample.at_s, 0.0), value)
    return Reading(stats.mean(list(at.values())) or 0.0, n=len(at))


@signal("cpu.process.busiest.cores", unit="cores")
def busiest_process(obs: Observations) -> Reading:
    """CPUs that the busiest process kept busy, mean over the steady phase; above 1, several threads did.

    Busy is not useful: engines poll for work and CUDA spins while it waits. Only from pasted output.
    Cross-check: `pidstat -u 1`, %CPU over 100.
    """
    window = obs.phase("steady")
    means = {
        key: stats.mean(inside)
        for key, series in window.series("cpu.process", "cores_used", "pid").items()
        if (inside := [v for t, v in zip(series.at_s, series.values, strict=True) if _in(window, t)])
    }
    if not means:
        raise NoValue("no reading of a process in the steady phase")
    return Reading(max(v for v in means.values() if v is not None), n=len(means))


def _in(window: Window, at_s: float) -> bool:
    return window.start_s <= at_s <= window.end_s


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


SIGNALS = (
    oncpu,
    busy,
    runq_wait,
    host_idle,
    steal,
    runnable,
    busiest_core,
    busiest_process,
    others,
    throttled,
)
