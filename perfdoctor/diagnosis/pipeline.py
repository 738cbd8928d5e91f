"""A run in, a Diagnosis out: trust, signals, laws, ledger, rules, fixes, verdict. Pure, and never raises.

What a run does not hold is missing with its reason, all the way to the report; nothing is guessed instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from perfdoctor import trust
from perfdoctor.diagnosis import culprits, judge, laws, ledger, prescribe, roof, verdict
from perfdoctor.diagnosis.laws import promises
from perfdoctor.diagnosis.measure import Table, measure_all
from perfdoctor.diagnosis.observations import Observations
from perfdoctor.diagnosis.rule import Rule
from perfdoctor.model import (
    Diagnosis,
    Finding,
    Ledger,
    RequestRecord,
    RuleState,
    RunFacts,
    Sample,
    Trust,
    Violation,
)

LEAST_REQUESTS, LEAST_SECONDS = 10, 3.0  # guess: fewer show no percentile and no queue


def diagnose(
    facts: RunFacts, state: str, requests: Sequence[RequestRecord], samples: Sequence[Sample]
) -> Diagnosis:
    """Judge one run, complete or not. `state` is the run's own: a killed run is `interrupted`."""
    obs = Observations(facts, state, requests, samples)
    trusted = trust.judge(facts.client, requests)
    table = measure_all(obs)
    lawful, violated = laws.check(obs, table)
    kept = ledger.keep(obs)
    watched = facts.scenario.load.arrival == "none"
    too_thin = "" if watched else _too_thin(table)
    barred = _barred(trusted, violated, too_thin)
    ground = judge.Ground(table, kept, table["drive.seconds"].value or 0.0, barred)
    findings, states = _findings(facts, ground)
    findings = tuple(msgspec.structs.replace(f, where=culprits.find(f.cls, obs)) for f in findings)
    findings, promised, too_much = promises.hold(findings)
    roofed = roof.measure_roof(facts, table)
    loads_seen = any(phase.name == "load" for phase in facts.phases)
    no_traffic = _no_traffic(table) if watched else ""
    grounds = verdict.Grounds(
        trusted, findings, states, table, roofed, kept, too_thin, loads_seen, no_traffic
    )
    decided = verdict.decide(grounds)
    return Diagnosis(
        run=facts.run,
        state=state,
        trust=trusted,
        verdict=decided,
        findings=findings,
        rules=states,
        ledger=kept,
        roof=roofed,
        violated_laws=(*violated, *too_much),
        laws=(*lawful, promised),
        unmeasured=tuple(p for p in facts.probes if p.status != "ok"),
        signals=tuple(table.values()),
        facts=facts,
        next=verdict.next_command(facts, decided, findings, thin=bool(too_thin)),
    )


def _too_thin(table: Table) -> str:
    """Why no rule about requests can be judged, or nothing."""
    requests, seconds = int(table["drive.requests"].value or 0), table["drive.seconds"].value or 0.0
    if requests >= LEAST_REQUESTS and seconds >= LEAST_SECONDS:
        return ""
    return (
        f"only {requests} complete requests in {seconds:.1f} s under load; {LEAST_REQUESTS} in "
        f"{LEAST_SECONDS:.0f} s are needed, {judge.FULL_REQUESTS} in {judge.FULL_SECONDS:.0f} s for more "
        "than low confidence"
    )


def _no_traffic(table: Table) -> str:
    """That nobody asked the server for anything while it was watched, or nothing."""
    finished, running = table["drive.requests"].value, table["engine.running.mean"].value
    if finished or running or (finished is None and running is None):
        return ""
    seconds = table["drive.seconds"].value or 0.0
    return f"No traffic: nothing was running in the server for {seconds:.0f} s, and nothing was finished."


def _barred(trusted: Trust, violated: Sequence[Violation], too_thin: str) -> dict[str, str]:
    """Classes that cannot be judged in this run, with the first reason that counts."""
    barred: dict[str, str] = {}
    of_requests = [rule.cls for _, rule in judge.load_rules() if rule.of == "request"]
    of_requests.append("insufficient-load")
    for violation in reversed(violated):
        barred |= dict.fromkeys(violation.stops, f"law {violation.law} is broken: {violation.what}")
    if too_thin:
        barred |= dict.fromkeys(of_requests, too_thin)
    if trusted.status == "invalid":
        reason = "the measurement cannot be trusted: " + "; ".join(trusted.reasons)
        barred |= dict.fromkeys(of_requests, reason)
    return barred


def _findings(facts: RunFacts, ground: judge.Ground) -> tuple[tuple[Finding, ...], tuple[RuleState, ...]]:
    """Hits in the order of the wall-clock time they explain; rules of the measurement come last."""
    rules = judge.load_rules()
    judged = [(rule, judge.judge(name, rule, ground)) for name, rule in rules]
    explained = any(j.finding for rule, j in judged if rule.of != "measurement")
    judged = [(rule, _give_up(rule, j) if rule.only_alone and explained else j) for rule, j in judged]
    found = [_with_fixes(rule, j, facts, ground.ledger) for rule, j in judged if j.finding]
    found = _below_their_causes(found, dict(rules))
    found.sort(key=lambda f: (f.of == "measurement", bool(f.explained_by), -(f.run_seconds or 0.0), f.rule))
    return tuple(found), tuple(j.state for _, j in judged)


def _below_their_causes(found: Sequence[Finding], rules: Mapping[str, Rule]) -> list[Finding]:
    """Say of each finding whose rule another hit explains that it is a symptom, and of what."""
    causes = {symptom: f.rule for f in found for symptom in rules[f.rule].explains}
    return [msgspec.structs.replace(f, explained_by=causes.get(f.rule)) for f in found]


def _give_up(rule: Rule, judged: judge.Judgement) -> judge.Judgement:
    """A rule that holds only while nothing else does."""
    if judged.finding is None:
        return judged
    state = msgspec.structs.replace(judged.state, status="clear", reason="another rule explains the time")
    return judge.Judgement(state)


def _with_fixes(rule: Rule, judged: judge.Judgement, facts: RunFacts, kept: Ledger) -> Finding:
    finding = judged.finding
    assert finding is not None
    if judged.overruled:
        return finding
    rows = [row for row in judge.rows_of(rule, kept) if row.row in rule.cost]
    return msgspec.structs.replace(finding, fixes=prescribe.offers(rule.cls, facts, rows, rule=finding.rule))
