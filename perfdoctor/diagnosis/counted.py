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


def inside(obs: Observations) -> tuple[float, float]:
    """(running, waiting) requests in the server, means of its gauges over the window."""
    window = obs.phase("steady")
    running, waiting = window.gauge("engine", "running"), window.gauge("engine", "waiting")
    return sum(running) / len(running), sum(waiting) / len(waiting)


def queue_share(obs: Observations) -> float:
    """Queue time over the time of a request, by Little's law: waiting over all that are inside.

    NoValue while nobody is inside.
    """
    running, waiting = inside(obs)
    if running + waiting <= 0:
        raise NoValue("nobody was in the server when its gauges were read")
    return waiting / (running + waiting)
