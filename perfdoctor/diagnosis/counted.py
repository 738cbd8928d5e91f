"""What the server's own counters gained over a window: means and numbers of requests, never totals.

From its /metrics; what is missing there, from its log.
"""

from __future__ import annotations

from perfdoctor.diagnosis.observations import NoValue, Observations

SOURCE = "the server's histograms over the window"
FOREIGN_LOAD = 1.5  # guess: half again as many requests inside the server as ours


def watches(obs: Observations) -> bool:
    """The run sent nothing: it watched the traffic of others."""
    return obs.facts.scenario.load.arrival == "none"


def mean_of(obs: Observations, name: str) -> float:
    """Mean seconds of a histogram's new observations. NoValue without any."""
    count = gained(obs, f"{name}_count")
    if count <= 0:
        raise NoValue(f"the server finished nothing of {name} in the window")
    return gained(obs, f"{name}_sum_s") / count


def gained(obs: Observations, name: str) -> float:
    """What a counter gained in the steady phase; NoValue with the metrics' reason where no log tells it."""
    window = obs.phase("steady")
    try:
        return window.change("engine", name).amount
    except NoValue as missing:
        try:
            return window.change("log", name).amount
        except NoValue:
            raise missing from None


def requests(obs: Observations) -> float:
    """Requests the server finished in the window, by any of its counters."""
    for name in ("requests", "e2e_count", "ttft_count", "decode_count"):
        try:
            return gained(obs, name)
        except NoValue:
            continue
    raise NoValue("the server does not count its requests")


def of_others_too(obs: Observations, ours: int) -> bool:
    """Whether the server finished far more requests in the window than these: its means are not theirs."""
    return requests(obs) > ours * FOREIGN_LOAD + 1


def gauge(obs: Observations, name: str) -> list[float]:
    """Readings of the server's metrics, else of its log; NoValue with the metrics' reason without either."""
    window = obs.phase("steady")
    try:
        return window.gauge("engine", name)
    except NoValue as missing:
        try:
            return window.gauge("log", name)
        except NoValue:
            raise missing from None


def inside(obs: Observations) -> tuple[float, float]:
    """(running, waiting) requests in the server, means of its gauges over the window."""
    running, waiting = gauge(obs, "running"), gauge(obs, "waiting")
    return sum(running) / len(running), sum(waiting) / len(waiting)


def queue_share(obs: Observations) -> float:
    """Queue time over the time of a request, by Little's law: waiting over all that are inside.

    NoValue while nobody is inside.
    """
    running, waiting = inside(obs)
    if running + waiting <= 0:
        raise NoValue("nobody was in the server when its gauges were read")
    return waiting / (running + waiting)
