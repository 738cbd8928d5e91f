"""When the requests of an open loop are due: pure arithmetic on one seeded generator.

A process of unit rate is drawn once and then stretched along the integral of the asked rate, so a ramp keeps
the character of its process (Cinlar 1975, time rescaling). Worker k of w sends the arrivals k, k+w, k+2w ...
of this one schedule; generators of their own would repeat each other's gaps.

    rate     __/           integral      /        an arrival of unit time u is due
            /                          _/         where the integral reaches u
        ___/                       __--
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfdoctor.errors import UsageError
from perfdoctor.model import Load

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Times = NDArray[numpy.float64]

FIRST_BLOCK = 1024  # arrivals drawn at first; more follow until the load is covered
NEGLIGIBLE = 1e-9  # seconds between two corners that make a step, and requests a second that make none
MOST = 50_000_000  # arrivals; 400 MB


@dataclass(frozen=True, slots=True)
class Schedule:
    """`due_s`: seconds from the stage's start, ascending; the first `lead` of them belong to the warm-up.

    `steady_s` is where the warm-up hands over.
    """

    due_s: Times
    lead: int = 0
    steady_s: float = 0.0


def due_times(load: Load) -> Times:
    """The schedule of a load without warm-up, in seconds from its start."""
    return plan(load).due_s


def plan(
    load: Load, lead_requests: int = 0, lead_s: float = 0.0, recorded_s: Sequence[float] = ()
) -> Schedule:
    """The whole schedule. `recorded_s` are the instants of a trace, for `replay`.

    The warm-up lasts for `lead_requests` and `lead_s`, whichever is longer, at the rate that the load begins
    with; `load.requests` and `load.duration_s` count from its end. A ramp with neither ends at its last
    corner.
    """
    check(load)
    if load.arrival == "replay":
        return _replayed(load, lead_requests, lead_s, recorded_s)
    corners = _corners(load)
    duration_s = load.duration_s
    if duration_s is None and load.requests is None:
        if not load.ramp:
            raise UsageError("an open loop needs an end", do="give --duration or -n")
        duration_s = corners[-1][0]
    _refuse_endless(load.requests, duration_s, lead_requests, lead_s, max(rate for _, rate in corners))
    first_rate = corners[0][1]
    lead_s_of_requests = lead_requests / first_rate if first_rate else 0.0
    shift_s = max(lead_s, lead_s_of_requests) if load.ramp else 0.0
    rate = Rate(tuple((at + shift_s, value) for at, value in corners))
    return _cover(load, rate, lead_requests, lead_s, duration_s)


def check(load: Load) -> None:
    """UsageError for orders that no schedule can be made of, whatever the target."""
    if load.arrival == "closed":
        return
    if load.arrival == "replay":
        if not load.replay_speed > 0:
            raise UsageError(f"a replay cannot run at speed {load.replay_speed:g}", do="give one above zero")
        return
    corners = _corners(load)
    if any(rate < 0 or not math.isfinite(rate) for _, rate in corners):
        raise UsageError("a rate is a number of requests a second, 0 or more", do="correct --rate or --ramp")
    if not corners or not max(rate for _, rate in corners) > 0:
        raise UsageError("an open loop needs a rate above zero", do="give --rate or --ramp")
    if [at for at, _ in corners] != sorted(at for at, _ in corners):
        raise UsageError("the corners of a ramp go forward in time", do="correct --ramp")
    if load.arrival == "gamma" and not load.burstiness > 0:
        raise UsageError(
            f"a burstiness of {load.burstiness:g} is none", do="give one above zero; 1 is Poisson"
        )


def _corners(load: Load) -> tuple[tuple[float, float], ...]:
    return load.ramp or (((0.0, load.rate),) if load.rate is not None else ())


def _refuse_endless(
    requests: int | None, duration_s: float | None, lead_requests: int, lead_s: float, rate_max: float
) -> None:
    by_time = math.inf if duration_s is None else duration_s * rate_max
    by_count = math.inf if requests is None else requests
    if min(by_time, by_count) + max(lead_requests, lead_s * rate_max) > MOST:
        raise UsageError(f"more than {MOST:,} requests", do="ask for a lower rate or a shorter load")


@dataclass(frozen=True, slots=True)
class Rate:
    """Arrivals a second, straight between `corners` of (second, rate), level before and after them."""

    corners: tuple[tuple[float, float], ...]

    def instants(self, units: Times) -> Times:
        """Where the integral of the rate reaches each of `units`; those that it never reaches are left out.

        Within one segment the integral is r0*x + s*x^2/2, solved for x in the form that is exact for s = 0.
        """
        import numpy as np

        starts, rates, slopes = self._segments()
        reached = self._integrals(starts, rates, slopes)
        segment = np.searchsorted(reached, units, side="right") - 1
        left, r0, slope = units - reached[segment], rates[segment], slopes[segment]
        root = r0 + np.sqrt(np.maximum(r0 * r0 + 2 * slope * left, 0.0))
        moves = root > NEGLIGIBLE
        x = np.divide(2 * left, root, out=np.zeros_like(left), where=moves)
        return np.asarray((starts[segment] + x)[moves | (left <= 0)], dtype=np.float64)

    def _segments(self) -> tuple[Times, Times, Times]:
        """Start, rate at the start and slope of each stretch; the last goes on for ever."""
        import numpy as np

        at, rate = (np.array(column, dtype=np.float64) for column in zip(*self.corners, strict=True))
        at, rate = np.append(0.0, at), np.append(rate[0], rate)
        width = np.diff(at)
        slope = np.divide(np.diff(rate), width, out=np.zeros_like(width), where=width > NEGLIGIBLE)
        return at, rate, np.append(slope, 0.0)

    @staticmethod
    def _integrals(starts: Times, rates: Times, slopes: Times) -> Times:
        """The integral of the rate up to the start of each stretch."""
        import numpy as np

        width = np.diff(starts)
        return np.append(0.0, np.cumsum(rates[:-1] * width + slopes[:-1] * width**2 / 2))


def _cover(load: Load, rate: Rate, lead_requests: int, lead_s: float, duration_s: float | None) -> Schedule:
    """Draw until the schedule reaches the load's end, then cut it there."""
    import numpy as np

    generator = np.random.default_rng(load.seed)
    units, block = np.empty(0), FIRST_BLOCK
    while True:
        units = np.append(units, _unit_process(load, generator, units, block))
        due_s = rate.instants(units)
        ended = len(due_s) < len(units)
        schedule = _cut(due_s, lead_requests, lead_s, load.requests, duration_s)
        if ended or len(schedule.due_s) < len(due_s):
            return schedule
        block = len(units)


def _unit_process(load: Load, generator: numpy.random.Generator, before: Times, n: int) -> Times:
    """The next `n` arrivals of the process at one a second. Gamma: mean 1, CV 1/sqrt(burstiness)."""
    import numpy as np

    if load.arrival == "constant":
        return np.arange(len(before), len(before) + n, dtype=np.float64)
    shape = load.burstiness if load.arrival == "gamma" else 1.0
    last = before[-1] if len(before) else 0.0
    return np.asarray(last + np.cumsum(generator.standard_gamma(shape, n) / shape), dtype=np.float64)


def _cut(
    due_s: Times, lead_requests: int, lead_s: float, requests: int | None, duration_s: float | None
) -> Schedule:
    import numpy as np

    in_time = int(np.searchsorted(due_s, lead_s)) if lead_s else 0
    lead = min(max(lead_requests, in_time), len(due_s))
    steady_s = lead_s
    if lead > in_time:
        steady_s = float(due_s[min(lead, len(due_s) - 1)])
    end = len(due_s)
    if duration_s is not None:
        end = int(np.searchsorted(due_s, steady_s + duration_s))
    if requests is not None:
        end = min(end, lead + requests)
    return Schedule(due_s[:end], lead, steady_s)


def _replayed(load: Load, lead_requests: int, lead_s: float, recorded_s: Sequence[float]) -> Schedule:
    """A trace at `replay_speed`, from its first request on."""
    import numpy as np

    times = np.asarray(recorded_s, dtype=np.float64)
    due_s = (times - times[0]) / load.replay_speed if len(times) else times
    return _cut(due_s, lead_requests, lead_s, load.requests, load.duration_s)
