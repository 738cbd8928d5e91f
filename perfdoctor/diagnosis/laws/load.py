"""Laws of the load: requests in flight, and time seen from both ends."""

from __future__ import annotations

from perfdoctor import units
from perfdoctor.diagnosis import counted
from perfdoctor.diagnosis.laws._law import ROUNDING, Law, need
from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.model import Violation

CLOCK_S = 0.001  # two clocks' reading


def users(obs: Observations, table: Table) -> Violation | None:
    """A closed loop has no more open requests than users."""
    if obs.facts.scenario.load.arrival != "closed":
        raise NoValue("an open loop has no number of users")
    open_mean, users = need(table, "drive.in_flight.mean"), need(table, "drive.concurrency")
    if open_mean <= users * ROUNDING + 0.1:
        return None
    return Violation(
        law="L1",
        what=f"{open_mean:.1f} requests in flight on average, but only {users:.0f} users",
        likely="stamps of two phases are mixed, or requests ended without being recorded",
        stops=("scheduling", "insufficient-load"),
    )


def foreign_load(obs: Observations, table: Table) -> Violation | None:
    """A server holds no more requests than were sent to it."""
    ours = need(table, "drive.in_flight.mean")
    steady = obs.phase("steady")
    held = [
        sum(values) / len(values)
        for name in ("running", "waiting")
        if (values := steady.gauge("engine", name))
    ]
    if sum(held) <= ours * counted.FOREIGN_LOAD + 1:
        return None
    return Violation(
        law="L1",
        what=f"the server holds {sum(held):.1f} requests, this run had {ours:.1f} open",
        likely="somebody else is using the server at the same time",
        stops=("scheduling",),
    )


def server_time(obs: Observations, table: Table) -> Violation | None:
    """A server takes no longer for a request than its client waits.

    Compared where the server finished no more requests than this run made, so that both mean the same ones.
    """
    served = need(table, "e2e.steady.mean")
    if counted.of_others_too(obs, len(obs.ok("steady"))):
        raise NoValue("the server's means are of others' requests too")
    claimed = counted.mean_of(obs, "e2e")
    if claimed <= served * ROUNDING + CLOCK_S:
        return None
    return Violation(
        law="L7",
        what=f"the server says {units.seconds(claimed)} for a request that took {units.seconds(served)} here",
        likely="the server's clock, unit or counter is at fault; nothing of its timings is used",
        stops=("scheduling",),
    )


LAWS = (Law("L1", users), Law("L1", foreign_load), Law("L7", server_time))
