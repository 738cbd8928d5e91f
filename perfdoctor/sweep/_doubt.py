"""Levels whose runs cannot be trusted although the answer of the sweep may be one of them. Pure."""

from __future__ import annotations

from perfdoctor.model import Sweep


def levels_in_doubt(found: Sweep) -> tuple[float, ...]:
    """Untrusted levels at which the answer would lie if they were well; others do not matter to it.

    With an SLO those above the level that was found and below the lowest that misses it. Without one those
    beside the knee, between which nothing else was run; where no knee was found, all of them.
    """
    low, high = _room(found)
    return tuple(
        sorted(
            row.level
            for row in found.levels
            if row.trust and row.trust.status == "invalid" and not row.repeated and low < row.level < high
        )
    )


def _room(found: Sweep) -> tuple[float, float]:
    """Between what the answer may lie; nothing where it is known."""
    endless = float("inf")
    if found.slo is not None:
        missed = found.slo.missed_at
        return found.slo.level or 0.0, endless if missed is None else missed
    if found.knee is None or found.knee.level is None:
        return 0.0, endless
    return found.knee.between or (found.knee.level, found.knee.level)
