"""Which level comes next, and why there is none. Pure.

given levels, or 1 2 4 8 ...       until twice past the knee, or with an SLO until that is missed
one level again, longer            once, where too few requests were made to say what was asked
with an SLO: levels between        the highest that is within, and the lowest above it that is not, halved
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from perfdoctor.model import Over, SweepLevel
from perfdoctor.sweep._knee import find_knee, kept_up

ENOUGH = 20  # requests below which a p95 is the largest value
FINE = 0.05  # of a number of users: from 40 on one more is nothing that a run can show
FINE_RATE = 0.10  # of a rate
MOST_BETWEEN = 8  # halvings: from 256 users down to 1
# Doublings: llama.cpp on one thread does 34, 33, 39, 44, 42 requests/s at 1, 2, 4, 8, 16 users, so that one
# level without a gain is no knee yet.
FAR = 4  # times the knee
DOUBLINGS = 6  # of a rate, up to its limit

Why = Literal["given", "doubled", "repeated", "between"]


@dataclass(frozen=True, slots=True)
class Plan:
    """`levels` None: doubling up to `most`, from 1 user or a 64th of the highest rate. `has_slo`: levels
    between are looked for. `counted`: each level ends by its number of requests, however few."""

    over: Over = "concurrency"
    levels: tuple[float, ...] | None = None
    most: float = 256
    has_slo: bool = False
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    level: float
    why: Why


@dataclass(frozen=True, slots=True)
class End:
    """Why no further level is run."""

    reason: str


def next_step(plan: Plan, rows: Sequence[SweepLevel]) -> Step | End:
    """From the levels run so far, in their order."""
    if rows:
        last = rows[-1]
        if last.state == "interrupted":
            return End("interrupted")
        if last.error is not None:
            return End(f"{named(plan.over, last.level)} could not be measured")
        if last.why != "repeated" and worth_repeating(plan, last):
            return Step(last.level, "repeated")
    grown = _grow(plan, rows)
    if isinstance(grown, Step) or not plan.has_slo:
        return grown
    return _between(plan, rows) or grown


def worth_repeating(plan: Plan, row: SweepLevel) -> bool:
    """Other work on the machine can spoil a level, and a short one has too few requests. One that misses the
    SLO by its values, but not by more than chance, decides whether to go on."""
    if row.stopped:
        return False
    spoilt = row.trust is not None and row.trust.status == "invalid" and row.failed * 2 < row.requests
    doubtful = row.slo == "not_decided" and row.slo_met is not True
    few = row.requests - row.failed < ENOUGH and not plan.counted
    return spoilt or doubtful or few


def _grow(plan: Plan, rows: Sequence[SweepLevel]) -> Step | End:
    run = {row.level for row in rows}
    if plan.levels is not None:
        left = [level for level in plan.levels if level not in run]
        return Step(left[0], "given") if left else End("all levels were run")
    grown = [row for row in rows if row.why in ("doubled", "repeated")]
    if not grown:
        return Step(1.0 if plan.over == "concurrency" else plan.most / 2**DOUBLINGS, "doubled")
    last = max((row for row in grown if not row.repeated), key=lambda row: row.level)
    end = _end_of_growth(plan, last, rows)
    if end is not None:
        return end
    return Step(min(last.level * 2, float(plan.most)), "doubled")


def _end_of_growth(plan: Plan, last: SweepLevel, rows: Sequence[SweepLevel]) -> End | None:
    at = named(plan.over, last.level)
    if last.stopped:
        return End(f"at {at}: {last.stopped}")
    if last.trust is not None and last.trust.status == "invalid":
        return End(f"at {at} the measurement cannot be trusted: {'; '.join(last.trust.reasons)}")
    if plan.has_slo and (last.slo == "missed" or last.slo_met is False):
        return End(f"the SLO is missed at {at}")
    if not plan.has_slo and (passed := _passed(plan, last, rows)):
        return passed
    if last.level >= plan.most:
        flag = "--max-concurrency" if plan.over == "concurrency" else "--max-rate"
        return End(f"{flag} {plan.most:g} is reached")
    return None


def _passed(plan: Plan, last: SweepLevel, rows: Sequence[SweepLevel]) -> End | None:
    """Whether more load would tell nothing of the knee. A rate may be too high from the first level on."""
    at = named(plan.over, last.level)
    if plan.over == "rate":
        return None if kept_up(last) else End(f"the server did not keep up with {at}")
    knee = find_knee(plan.over, rows)
    passed = knee.level is not None and last.level >= FAR * knee.level
    return End(f"the knee is passed: {at} brought hardly more throughput") if passed else None


def _between(plan: Plan, rows: Sequence[SweepLevel]) -> Step | None:
    """The highest doubtful level again first: if it is within, so are those below it, doubtful as they were
    of fewer requests."""
    current = [row for row in rows if not row.repeated]
    low, high = bracket(current)
    missed = min((row.level for row in current if row.slo == "missed"), default=float("inf"))
    doubtful = [
        row.level
        for row in current
        if row.slo == "not_decided" and row.why != "repeated" and low < row.level < missed and not row.stopped
    ]
    if doubtful:
        return Step(max(doubtful), "repeated")
    if high is None or sum(row.why == "between" for row in rows) >= MOST_BETWEEN:
        return None
    middle = _middle(plan.over, low, high)
    return None if middle is None else Step(middle, "between")


def bracket(current: Sequence[SweepLevel]) -> tuple[float, float | None]:
    """The highest level within the SLO below all that miss it (0: none), and the lowest above that is not."""
    missed = [row.level for row in current if row.slo == "missed"]
    lowest_missed = min(missed, default=float("inf"))
    within = [row.level for row in current if row.slo == "met" and row.level < lowest_missed]
    low = max(within, default=0.0)
    not_within = [row.level for row in current if row.level > low and row.slo != "met"]
    return low, min(not_within, default=None)


def _middle(over: Over, low: float, high: float) -> float | None:
    """None where the two are as near as matters."""
    if over == "concurrency":
        near = high - low <= max(1.0, FINE * high)
        return None if near else float((low + high) // 2)
    return None if high - low <= FINE_RATE * high else float(f"{(low + high) / 2:.3g}")


def named(over: Over, level: float) -> str:
    """`8 users`, `2.5/s`."""
    if over == "rate":
        return f"{level:g}/s"
    return "1 user" if level == 1 else f"{level:g} users"
