"""The load generator's own health, as the trust rules see it."""

from __future__ import annotations

from collections.abc import Callable

from perfdoctor.diagnosis.measure import Measure, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, ratio
from perfdoctor.diagnosis.signals.requests import STEADY_E2E
from perfdoctor.model import ClientFacts


def _fact(name: str, field: Callable[[ClientFacts], float | None], page: str) -> Measure:
    def compute(obs: Observations) -> float:
        value = field(obs.facts.client)
        if value is None:
            raise NoValue("the load generator did not record it")
        return value

    return Measure(name, "share", compute, page)


CPU = _fact(
    "client.cpu.share",
    lambda c: c.cpu_share,
    "CPU time of the load generator in the steady phase, as a share of one core. Cross-check: `top -p PID`.",
)
RUNQ = _fact(
    "client.runq_wait.share",
    lambda c: c.runq_wait_share,
    "Share of the steady phase in which the load generator was ready to run but had no CPU.",
)


@signal("client.cores.share", unit="share")
def cores(obs: Observations) -> float:
    """CPU time of the load generator as a share of all the host's cores: what it takes from a server here.

    Of several driver processes the busiest is known, so this is at most too high.
    """
    if obs.facts.target.remote:
        raise NoValue("the server runs on another host")
    used = CPU.of(obs) * obs.facts.client.workers
    return ratio(used, float(obs.facts.host.cores), "the number of cores")


@signal("client.loop_lag.share", unit="share")
def loop_lag(obs: Observations) -> float:
    """99th percentile of the client's event-loop lag over the median request time: its own timing error."""
    return _over_request(obs, obs.facts.client.loop_lag_p99_s)


@signal("client.send_late.share", unit="share")
def send_late(obs: Observations) -> float:
    """99th percentile of how late requests were sent, over the median request time."""
    return _over_request(obs, obs.facts.client.send_late_p99_s)


def _over_request(obs: Observations, seconds: float | None) -> float:
    if seconds is None:
        raise NoValue("the load generator did not record it")
    return ratio(seconds, STEADY_E2E.of(obs), "the median request time")


SIGNALS = (CPU, RUNQ, cores, loop_lag, send_late)
