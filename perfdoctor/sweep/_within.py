"""The highest load within an SLO, as far as the levels of a sweep tell. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perfdoctor.model import Over, SweepLevel, WithinSlo
from perfdoctor.sweep._steps import bracket, named


def find_within(over: Over, rows: Sequence[SweepLevel]) -> WithinSlo:
    """Of levels with a decision on the SLO, in any order."""
    current = [row for row in rows if not row.repeated]
    low, high = bracket(current)
    best = next((row for row in current if row.level == low), None)
    missed = min((row.level for row in current if row.slo == "missed"), default=None)
    doubtful = tuple(sorted(row.level for row in current if row.level > low and row.slo == "not_decided"))
    found = WithinSlo(
        status="none",
        level=best.level if best else None,
        requests_per_s=best.requests_per_s if best else None,
        missed_at=missed,
        not_decided_at=doubtful,
    )
    if best is None:
        status = "not_decided" if doubtful else "none"
        return _with(found, status=status, reason=_none(over, current, missed, doubtful))
    status = "found" if high is not None else "not_reached"
    return _with(found, status=status, reason=_reason(over, current, low, high))


def _none(over: Over, rows: Sequence[SweepLevel], missed: float | None, doubtful: Sequence[float]) -> str:
    if doubtful:
        return "; ".join(_why(over, rows, level) for level in doubtful)
    return _why(over, rows, missed) if missed is not None else "no level could be measured"


def _reason(over: Over, rows: Sequence[SweepLevel], low: float, high: float | None) -> str:
    if high is None:
        return f"all levels that were run are within it; more than {named(over, low)} was not tried"
    return _why(over, rows, high)


def _why(over: Over, rows: Sequence[SweepLevel], level: float) -> str:
    """What kept a level out: `at 8 users ttft_p95<500ms: missed, it is 612 ms`."""
    row = next(row for row in rows if row.level == level)
    why = row.error or row.stopped or "; ".join(row.slo_reasons) or "it could not be judged"
    chance = f" ({row.requests - row.failed} requests do not tell)" if row.slo == "not_decided" else ""
    return f"at {named(over, level)} {why}{chance}"


def _with(within: WithinSlo, **changes: object) -> WithinSlo:
    import msgspec

    return msgspec.structs.replace(within, **changes)
