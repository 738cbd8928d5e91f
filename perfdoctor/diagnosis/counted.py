"""What the server's own counters gained over a window: means and numbers of requests, never totals."""

from __future__ import annotations

from perfdoctor.diagnosis.observations import NoValue, Observations

SOURCE = "the server's histograms over the window"


def watches(obs: Observations) -> bool:
    """The run sent nothing: it watched the traffic of others."""
    return obs.facts.scenario.load.arrival == "none"


def mean_of(obs: Observations, name: str) -> float:
    """Mean seconds of a histogram's new observations. NoValue without any."""
    window = obs.phase("steady")
    count = window.change("engine", f"{name}_count").amount
    if count <= 0:
        raise NoValue(f"the server finished nothing of {name} in the window")
    return window.change("engine", f"{name}_sum_s").amount / count


def requests(obs: Observations) -> float:
    """Requests the server finished in the window, by any of its counters."""
    window = obs.phase("steady")
    for name in ("requests", "e2e_count", "ttft_count"):
        try:
            return window.change("engine", name).amount
        except NoValue:
            continue
    raise NoValue("the server does not count its requests")


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
