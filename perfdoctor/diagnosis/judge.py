"""Tests rules against signals and turns hits into findings: cost, excluded neighbours, earned confidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdoctor import registry, units
from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.rule import Answer, Neighbour, Rule
from perfdoctor.model import Confidence, Evidence, Finding, Ledger, LedgerRow, RuleState, Signal

RULES = "perfdoctor.diagnosis.rules"
UNEXPLAINED_MAX = 0.25  # above it nobody may claim more than a pattern
LEAST_SHARE = 0.05  # guess: no measurement here tells a twentieth from noise
FULL_REQUESTS, FULL_SECONDS = 30, 10.0  # a full run; fewer show the pattern only


@dataclass(frozen=True, slots=True)
class Ground:
    """What a judgement stands on. `barred` maps classes to the reason why they cannot be judged."""

    table: Table
    ledger: Ledger
    steady_s: float
    barred: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Judgement:
    state: RuleState
    finding: Finding | None = None
    overruled: bool = False  # a neighbour's wording replaced the rule's own: its fixes do not apply


def load_rules() -> tuple[tuple[str, Rule], ...]:
    """Every rule with its id."""
    return tuple((name, rule) for name, rule, _ in registry.discover(RULES, "RULE"))


def judge(name: str, rule: Rule, ground: Ground) -> Judgement:
    """One rule on its own; `only_alone` is the pipeline's business."""
    if rule.cls in ground.barred:
        return _answered(name, rule, Answer("unknown", text=ground.barred[rule.cls]))
    answer = rule.when.test(ground.table)
    if answer.status != "hit":
        return _answered(name, rule, answer)
    neighbours = [(n, n.when.test(ground.table)) for n in rule.told_apart]
    for neighbour, seen in neighbours:
        if neighbour.refutes and seen.status == "hit":
            return _answered(name, rule, Answer("clear", text=f"rather {neighbour.name}: {seen.text}"))
    return _found(name, rule, ground, answer, neighbours)


def _answered(name: str, rule: Rule, answer: Answer) -> Judgement:
    return Judgement(_state(name, rule, answer))


def _state(name: str, rule: Rule, answer: Answer) -> RuleState:
    return RuleState(rule=name, cls=rule.cls, status=answer.status, reason=answer.reason, rows=rule.cost)


def _found(
    name: str, rule: Rule, ground: Ground, answer: Answer, neighbours: Sequence[tuple[Neighbour, Answer]]
) -> Judgement:
    rows = [row for row in rows_of(rule, ground.ledger) if row.row in rule.cost]
    small = _too_small(rule, rows)
    if small:
        return _answered(name, rule, Answer("clear", text=small))
    instead = next((n.instead for n, a in neighbours if n.instead and a.status == "hit"), "")
    cost = _cost(rows)
    finding = Finding(
        rule=name,
        cls=rule.cls,
        title=rule.title,
        status="hit",
        confidence=_confidence(rule, ground, neighbours),
        share=cost.share if cost else None,
        seconds=(cost.low_s, cost.high_s) if cost else None,
        run_seconds=_run_seconds(rule, ground, cost),
        of=rule.of,
        evidence=_evidence(rule, ground.table, answer),
        excluded=tuple(f"{n.name}: {a.reason}" for n, a in neighbours if a.status == "clear"),
        summary=_summary(rule, ground.table, cost, instead),
    )
    return Judgement(_state(name, rule, answer), finding, overruled=bool(instead))


def _evidence(rule: Rule, table: Table, answer: Answer) -> tuple[Evidence, ...]:
    """What decided, then what else points the same way. Each comparison once."""
    found = dict.fromkeys(answer.evidence)
    for condition in rule.support:
        found.update(dict.fromkeys(condition.test(table).evidence))
    return tuple(found)


# ------------------------------------------------------------------------------ cost


@dataclass(frozen=True, slots=True)
class _Cost:
    share: float
    seconds: float
    low_s: float
    high_s: float


def rows_of(rule: Rule, ledger: Ledger) -> tuple[LedgerRow, ...]:
    """The ledger that a rule's state takes time of: of loading, or of a request."""
    return ledger.load if rule.of == "load" else ledger.mean


def _cost(rows: Sequence[LedgerRow]) -> _Cost | None:
    """Sums of the rows a state explains; None when the ledger could not split them out."""
    if not rows:
        return None
    return _Cost(
        share=sum(r.share for r in rows),
        seconds=sum(r.seconds for r in rows),
        low_s=sum(r.seconds if r.low_s is None else r.low_s for r in rows),
        high_s=sum(r.seconds if r.high_s is None else r.high_s for r in rows),
    )


def _too_small(rule: Rule, rows: Sequence[LedgerRow]) -> str:
    """Why a state that is there is no finding: hardly any time is lost to it. Nothing where it is one."""
    share = sum(row.share for row in rows)
    if rule.of != "request" or not rows or share >= LEAST_SHARE:
        return ""
    return f"it explains {units.share(share)} of a request, less than {units.share(LEAST_SHARE)}"


def _run_seconds(rule: Rule, ground: Ground, cost: _Cost | None) -> float | None:
    """Wall-clock seconds of this run: of the load as they are, of requests their share of the phase."""
    if cost is None:
        return None
    return cost.seconds if rule.of == "load" else cost.share * ground.steady_s


# ------------------------------------------------------------------------------ confidence


def _confidence(rule: Rule, ground: Ground, neighbours: Sequence[tuple[Neighbour, Answer]]) -> Confidence:
    """low: the pattern only. medium: every neighbour excluded by its own number. high: an experiment moved
    the number as predicted and every neighbour was excluded; medium when some could not be tested."""
    if rule.of == "measurement":
        return "medium"
    if any(a.status == "hit" for _, a in neighbours) or _thin(rule, ground):
        return "low"
    excluded = all(a.status == "clear" for _, a in neighbours)
    proved = rule.experiment is not None and rule.experiment.test(ground.table).status == "hit"
    if excluded:
        return "high" if proved else "medium"
    return "medium" if proved else "low"


def _thin(rule: Rule, ground: Ground) -> bool:
    """Too little to claim more than a pattern: much time unexplained, or few requests in a short phase."""
    rows = rows_of(rule, ground.ledger)
    unexplained = sum(r.share for r in rows if r.row == "unexplained")
    if unexplained > UNEXPLAINED_MAX or not rows:
        return True
    if rule.of == "load":
        return False
    requests = ground.table["drive.requests"].value or 0
    return requests < FULL_REQUESTS or ground.steady_s < FULL_SECONDS


# ------------------------------------------------------------------------------ words


def _summary(rule: Rule, table: Table, cost: _Cost | None, instead: str) -> str:
    """The parts whose numbers are all known, with the numbers filled in."""
    parts = [text for part in rule.says if (text := _filled(part, table, cost)) is not None]
    sentence = "; ".join([instead, *parts[1:]] if instead else parts)
    return (sentence or rule.title) + "."


def _filled(template: str, table: Table, cost: _Cost | None) -> str | None:
    missing = False

    def fill(match: re.Match[str]) -> str:
        nonlocal missing
        text = _quantity(match.group(1), table, cost)
        missing = missing or text is None
        return text or ""

    text = re.sub(r"\{([\w.]+)\}", fill, template)
    return None if missing else text


def _quantity(name: str, table: Table, cost: _Cost | None) -> str | None:
    if name == "cost.share":
        return units.share(cost.share) if cost else None
    if name == "cost.seconds":
        return units.seconds(cost.seconds) if cost else None
    found: Signal | None = table.get(name)
    if found is None or found.value is None:
        return None
    unit = found.unit if found.unit in {"s", "share", "bytes", "bytes/s"} else ""
    return units.quantity(found.value, unit)
