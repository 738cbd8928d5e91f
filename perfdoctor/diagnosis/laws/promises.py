"""The law of every promise: a fix gains no more than the time that its finding explains."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from perfdoctor import units
from perfdoctor.model import Finding, FixOffer, LawState, Violation

NAME = "L8"
SAYS = "A fix gains no more than the time that it touches"
ROUNDING = 1.001  # of a factor; both sides are computed from the same rows


def hold(findings: Sequence[Finding]) -> tuple[tuple[Finding, ...], LawState, tuple[Violation, ...]]:
    """The findings without impossible promises, the law's state, and what was promised too much."""
    judged = [(f, offer) for f in findings for offer in f.fixes if offer.bound]
    broken = tuple(v for f, offer in judged if (v := _too_much(f, offer)))
    status = LawState(law=NAME, says=SAYS, status="holds")
    if broken:
        status = LawState(law=NAME, says=SAYS, status="broken", reason=broken[0].what)
    elif not judged:
        status = LawState(law=NAME, says=SAYS, status="unknown", reason="no fix with a bound is offered")
    return tuple(_without(f) for f in findings), status, broken


def _most(finding: Finding) -> float:
    """1 / (1 - share); of a finding that no row explains nothing can be promised."""
    share = min(finding.share or 0.0, 1.0)
    return 1 / (1 - share) if share < 1 else float("inf")


def _too_much(finding: Finding, offer: FixOffer) -> Violation | None:
    if offer.bound is None or offer.bound[1] <= _most(finding) * ROUNDING:
        return None
    return Violation(
        law=NAME,
        what=f"{offer.id} promises {units.number(offer.bound[1])}x, but {finding.rule} explains "
        f"{units.share(finding.share or 0.0)} of the time, which allows {units.number(_most(finding))}x",
        likely="the fix's gain was counted over other rows than its finding's; its bound is left out",
    )


def _without(finding: Finding) -> Finding:
    kept = tuple(
        msgspec.structs.replace(offer, bound=None) if _too_much(finding, offer) else offer
        for offer in finding.fixes
    )
    return msgspec.structs.replace(finding, fixes=kept)
