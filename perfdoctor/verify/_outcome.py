"""From the runs to a verdict. Pure.

A fix helps, or hurts, where the interval over pairs leaves out that nothing changed and the ratio is further
from 1 than equal sides would be by chance. Where answers differ, that is what is said first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from perfdoctor import change, units
from perfdoctor.diagnosis import prescribe
from perfdoctor.diagnosis.catalogue import Fix
from perfdoctor.model import Effect, FixVerdict, LedgerRow, Outputs, Verification
from perfdoctor.verify._order import equal_ratios, pairs_of

LEAST_JUDGED = 3  # pairs; a fix cannot be judged by fewer


def concluded(found: Verification) -> Verification:
    """With ratio, noise and verdict, from the values of its runs."""
    pairs = pairs_of(found.runs)
    ratios = [before.value / after.value for before, after in pairs if before.value and after.value]
    noise = change.noise_floor(equal_ratios(found.runs), len(ratios))
    moved = change.of_pairs(ratios)
    if moved is None or noise is None:
        few = f"{len(ratios)} pairs of runs count, and {LEAST_JUDGED} at least are needed"
        return msgspec.structs.replace(found, verdict="not_judged", reason=found.error or few)
    effect = effect_of(moved, noise)
    verdict: FixVerdict = "changes_output" if changes(found.outputs) else effect
    return msgspec.structs.replace(
        found,
        ratio=moved.ratio,
        interval=(moved.low, moved.high),
        noise=noise,
        effect=effect,
        verdict=verdict,
        reason=_reason(moved, noise, effect),
    )


def effect_of(moved: change.Change, noise: float) -> Effect:
    if not moved.significant or max(moved.ratio, 1 / moved.ratio) <= noise:
        return "no_effect"
    return "helps" if moved.ratio > 1 else "hurts"


def changes(outputs: Outputs) -> bool:
    return bool(outputs.differ or outputs.differ_together)


def _reason(moved: change.Change, noise: float, effect: Effect) -> str:
    if effect != "no_effect":
        return ""
    if max(moved.ratio, 1 / moved.ratio) <= noise:
        return f"no significant change: equal sides differ by up to {units.share(noise - 1)} here"
    return "no significant change: the interval holds that nothing changed"


def bound_of(fix: Fix | None, rows: Sequence[LedgerRow]) -> tuple[tuple[float, float] | None, str]:
    """How much faster a request can get at most, and what that is from."""
    if fix is None or not fix.removes:
        return None, "the catalogue names no time that it removes"
    if not rows:
        return None, "the before side has no ledger"
    share = math.fsum(row.share for row in rows if row.row in fix.removes)
    names = ", ".join(row.row for row in rows if row.row in fix.removes) or ", ".join(fix.removes)
    return prescribe.amdahl(share, fix.leaves), f"{names}: {units.share(share)} of the time before"
