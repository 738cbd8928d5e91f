"""Who held Python's global interpreter lock, by py-spy in short windows."""

from __future__ import annotations

from perfdoctor import stats
from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations


def _means(obs: Observations, probe: str, *keys: str) -> dict[tuple[str, ...], tuple[float, int]]:
    """Mean held share and windows by label, over py-spy windows that ended in the steady phase."""
    window = obs.phase("steady")
    found = {}
    for key, series in window.series(probe, "held_share", *keys).items():
        inside = [
            v for t, v in zip(series.at_s, series.values, strict=True) if window.start_s <= t <= window.end_s
        ]
        if inside:
            found[key] = stats.mean(inside) or 0.0, len(inside)
    if not found:
        raise NoValue("no py-spy window ended in the steady phase")
    return found


@signal("gil.held.share", unit="share")
def held(obs: Observations) -> Reading:
    """Share of time in which some thread of the server's busiest Python process held the GIL, 0-1.

    High with one holder means that Python is the work; it is contention only with a second holder. Missing
    when the server is no Python program or py-spy was denied. Cross-check: `py-spy top --gil --pid PID`.
    """
    value, windows = max(_means(obs, "gil", "pid").values())
    return Reading(value, n=windows)


@signal("gil.second.share", unit="share")
def second(obs: Observations) -> Reading:
    """Share of time in which the second busiest holder had the GIL: who gets in the serving thread's way.

    0 when one thread alone was ever seen with it. Missing like `gil.held.share`.
    """
    whole = max(n for _, n in _means(obs, "gil", "pid").values())
    window = obs.phase("steady")
    totals = []
    try:
        for series in window.series("gil.thread", "held_share", "pid", "thread").values():
            pairs = zip(series.at_s, series.values, strict=True)
            totals.append(sum(v for t, v in pairs if window.start_s <= t <= window.end_s))
    except NoValue:
        totals = []
    ranked = sorted(totals, reverse=True)
    return Reading(ranked[1] / whole if len(ranked) > 1 else 0.0, n=whole)


@signal("gil.other.share", unit="share")
def other(obs: Observations) -> Reading:
    """Share of time in which a thread that does not run the model held the GIL, 0-1: time the model waits.

    A thread runs the model when its stack was seen in a forward pass. A single hot thread, however busy, is
    no contention, and native code that released the lock does not count. Missing when no forward pass was
    seen: the model is not Python's, or it never got the lock. Cross-check: `py-spy record --gil --threads`.
    """
    window = obs.phase("steady")
    values = window.gauge("gil", "other_share")
    return Reading(stats.mean(values) or 0.0, n=len(values))


@signal("gil.idle.share", unit="share")
def idle(obs: Observations) -> Reading:
    """Share of time in which some thread of the server held the GIL before this run asked for anything, 0-1.

    Near 0 in a server at rest. High, a thread that does not serve is in the way of those that do, or other
    users are served. Missing for a local model, which is only just loaded then, and without py-spy.
    """
    if obs.facts.target.kind == "local":
        raise NoValue("a local model is being loaded until its first request")
    asked_s = min((r.sent_s for r in obs.requests if r.sent_s is not None), default=float("inf"))
    samples = [s for s in obs.samples("gil") if s.at_s <= asked_s]
    held = [v for s in samples if (v := s.values.get("held_share")) is not None]
    if not held:
        raise NoValue("no py-spy window ended before the first request")
    return Reading(max(held), n=len(held))


SIGNALS = (held, second, other, idle)
