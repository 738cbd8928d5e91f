"""The knee of a sweep: the load above which more of it brings hardly more throughput. Pure.

Closed loop (users): the smallest level with at least 90 % of the highest throughput seen. By the bounds of a
closed network (Denning and Buzen 1978) throughput rises as N/R until N* = R/D users keep the slowest station
busy, and is flat at 1/D after that; 90 % is the elbow of the two lines, less what chance takes off.

      X |        ________ 1/D        Kneedle (Satopaa et al. 2011) takes the point farthest above the chord
        |     .-'                    from the first level to the last. It moves with the last level: for
        |   .'                       N/(8+N) it is 16 users of 64 and 64 of 1,024, and so on without end,
        | .'                         where 90 % stop at 72. On a flat line it is the noise of one level.
        +----|-----------> N         So it is not used here.
             N*

Open loop (a rate): throughput is the rate itself until the server falls behind, so the smallest level near
the highest throughput is one that is overloaded. There the knee is the highest rate that was kept up with.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from perfdoctor import units
from perfdoctor.model import Knee, Over, SweepLevel
from perfdoctor.sweep._backlog import LEAST

SHARE = 0.90  # of the highest throughput, or of the rate; a convention, as the 90 % of a rise time
PASSED = 1.5  # times the knee: so far up must have been tried, or one level more may still have gained
SOURCE = "asymptotic bounds of a closed network, Denning and Buzen 1978; the 90 % are a convention"
SOURCE_OPEN = "what is not served piles up, and answers get longer; the 90 % are a convention"
METHOD = "the smallest level with at least 90 % of the highest throughput"
METHOD_OPEN = "the highest rate below all those of which less than 90 % was served"


def find_knee(over: Over, levels: Sequence[SweepLevel]) -> Knee:
    """From levels in any order; those without a throughput, or that cannot be trusted, are left out."""
    usable = sorted((row for row in levels if is_usable(row)), key=lambda row: row.level)
    closed = over == "concurrency"
    empty = Knee(
        status="unknown",
        method=METHOD if closed else METHOD_OPEN,
        source=SOURCE if closed else SOURCE_OPEN,
        reason="fewer than two levels gave a throughput that can be trusted",
    )
    if len(usable) < 2:
        return empty
    return _of_users(usable, empty) if closed else _of_rates(usable, empty)


def is_usable(row: SweepLevel) -> bool:
    return (
        not row.repeated
        and row.state == "complete"
        and row.error is None
        and row.requests_per_s is not None
        and row.requests_per_s > 0
        and (row.trust is None or row.trust.status != "invalid")
    )


def _of_users(rows: Sequence[SweepLevel], empty: Knee) -> Knee:
    most = max(rows, key=lambda row: row.requests_per_s or 0.0)
    highest = most.requests_per_s or 0.0
    at = next(i for i, row in enumerate(rows) if (row.requests_per_s or 0.0) >= SHARE * highest)
    found, top = rows[at], rows[-1].level
    if top < PASSED * found.level:
        return msgspec.structs.replace(
            empty,
            status="not_reached",
            reason=f"throughput still rose at {top:g}, the highest level that was tried"
            if at == len(rows) - 1
            else f"{top:g} users is too near {found.level:g} to say that more would gain nothing",
        )
    share = units.share((found.requests_per_s or 0.0) / highest)
    highest_text = f"{units.number(highest)} requests/s at {most.level:g} users"
    return msgspec.structs.replace(
        empty,
        status="found",
        level=found.level,
        between=(rows[at - 1].level, found.level) if at else None,
        requests_per_s=found.requests_per_s,
        reason="the highest of all levels"
        if found is most
        else f"{share} of the highest throughput, {highest_text}",
    )


def _of_rates(usable: Sequence[SweepLevel], empty: Knee) -> Knee:
    rows = [row for row in usable if row.served_share is not None]
    if not rows:
        return msgspec.structs.replace(
            empty, reason=f"no rate had the {LEAST} answers that tell whether it was served"
        )
    behind = next((i for i, row in enumerate(rows) if not kept_up(row)), None)
    if behind is None:
        return msgspec.structs.replace(
            empty, status="not_reached", reason=f"the server kept up with {rows[-1].level:g}/s, the highest"
        )
    if behind == 0:
        return msgspec.structs.replace(
            empty,
            reason=f"the server did not keep up even with {rows[0].level:g}/s, the lowest rate that was run",
        )
    found, over = rows[behind - 1], rows[behind]
    return msgspec.structs.replace(
        empty,
        status="found",
        level=found.level,
        between=(found.level, over.level),
        requests_per_s=found.requests_per_s,
        reason=f"of {over.level:g}/s it served {units.share(over.served_share)}",
    )


def kept_up(row: SweepLevel) -> bool:
    """Whether a rate was served as it came; what is still under way when the load ends is no shortfall."""
    return row.served_share is None or row.served_share >= SHARE
