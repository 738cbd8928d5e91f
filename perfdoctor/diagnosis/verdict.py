"""One answer from many: what the run as a whole says, and the next command to type."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from perfdoctor import units
from perfdoctor.diagnosis.measure import Table
from perfdoctor.model import Finding, Ledger, Roof, RuleState, RunFacts, Trust, Verdict

CAUSES = 3  # in the verdict; more is a list, not an answer
LOAD_CLASSES = ("disk-io",)
SCALED = 1.2  # the same number below which serial-server speaks of no scaling
NEAR_ROOF = 0.70  # guess: healthy and saturated
FULL = 0.90  # of a resource; the same number from which serial-server speaks of overload
NAMED = 4  # rules by name in one sentence; the report lists all
CONTENDED = 0.10  # of the serving thread's time in the run queue; others take its CPU, so it is not well
QUEUED = 0.20  # the limit of serial-server
# Seen, but no rule's business yet. A server with one of these is not well, whatever else is clear.
TROUBLES = (
    (
        "gil.idle.share",  # the limit of launch-bound-decode
        0.30,
        "Python's lock is held {} of the time while nobody asks, by a thread that does not serve",
    ),
    ("gpu.neighbours.max", 1, "{} compute on the same GPU beside it"),
)


@dataclass(frozen=True, slots=True)
class Grounds:
    """Everything the verdict is drawn from. `too_thin` says why there were too few requests, or is empty."""

    trust: Trust
    findings: Sequence[Finding]
    states: Sequence[RuleState]
    table: Table
    roof: Roof
    ledger: Ledger
    too_thin: str
    loads_seen: bool  # the run watched the model being loaded
    no_traffic: str = ""  # nobody asked for anything while the traffic of others was watched


def decide(grounds: Grounds) -> Verdict:
    """In this order: can it be trusted, was a cause found, was there enough load, is it well?"""
    if grounds.trust.status == "invalid":
        return _untrusted(grounds)
    if grounds.no_traffic:
        return Verdict(status="insufficient_load", cls="insufficient-load", summary=grounds.no_traffic)
    causes = [f for f in grounds.findings if f.of != "measurement" and not f.explained_by][:CAUSES]
    if causes:
        return Verdict(status="found", cls=causes[0].cls, summary=_summary_of(causes) + _seen(grounds))
    if grounds.too_thin:
        return Verdict(status="insufficient_evidence", summary=_capitalised(grounds.too_thin) + ".")
    for finding in grounds.findings:
        if finding.cls == "insufficient-load":
            return Verdict(status="insufficient_load", cls=finding.cls, summary=finding.summary)
    return _healthy(grounds) or _unresolved(grounds)


def _untrusted(grounds: Grounds) -> Verdict:
    limited = any(f.cls == "client-limited" for f in grounds.findings)
    reasons = "; ".join(grounds.trust.reasons)
    return Verdict(
        status="untrusted",
        cls="client-limited" if limited else None,
        summary=f"No verdict on the server: {reasons}.",
    )


def _summary_of(causes: Sequence[Finding]) -> str:
    also = [f"{f.title.lower()} ({units.share(f.share)})" if f.share else f.title.lower() for f in causes[1:]]
    return causes[0].summary + (f" Also: {'; '.join(also)}." if also else "")


def _healthy(grounds: Grounds) -> Verdict | None:
    """Shown, not left over: throughput grew with the load, or what it runs on is fully used by it. Waiting in
    line then means that all of it is in use."""
    scaling, queue = _value(grounds, "throughput.scaling"), _value(grounds, "server.queue.share")
    serial = any(s.cls == "scheduling" and s.status != "clear" for s in grounds.states)
    near, full = grounds.roof.achievable_share, _saturation(grounds)
    if serial or _troubles(grounds) or not ((scaling or 0) >= SCALED or (near or 0) >= NEAR_ROOF or full):
        return None
    users = _value(grounds, "drive.concurrency") or 0
    parts = []
    if scaling is not None and scaling >= SCALED:
        parts.append(f"{users:.0f} users get {units.number(scaling)} times the tokens of one")
    if near is not None and near >= NEAR_ROOF:
        parts.append(f"decoding is at {units.share(near)} of what the hardware achieves")
    if full and (scaling or 0) < SCALED:  # while throughput grows, busy CPUs may as well spin
        parts.append(f"{full} in use, so more users need more of it")
    if queue is not None and queue >= QUEUED:
        parts.append(f"{units.share(queue)} of a request is queue, so it is at its capacity")
    elif queue is not None:
        parts.append(f"{units.share(queue)} of a request is queue" if queue >= 0.01 else "nobody queues")
    stretch = _value(grounds, "latency.stretch")
    if stretch is not None:
        parts.append(f"a request takes {units.number(stretch)} times as long as alone")
    unknown = _unknown(grounds)
    tail = f" Not judged: {unknown}." if unknown else ""
    return Verdict(status="healthy", cls="healthy", summary=f"At this load {'; '.join(parts)}.{tail}")


def _saturation(grounds: Grounds) -> str:
    """The resource this server fills, in words, or nothing: full because others use it does not count."""
    full, waits = _value(grounds, "server.saturation.share"), _value(grounds, "cpu.serving.runq_wait.share")
    if full is None or full < FULL or (waits or 0.0) >= CONTENDED:
        return ""
    name = grounds.table["server.saturation.share"].source or "its busiest resource"
    return f"{name} are {units.share(full)}"


def _troubles(grounds: Grounds) -> str:
    found = [
        text.format(units.quantity(value, grounds.table[name].unit))
        for name, limit, text in TROUBLES
        if (value := _value(grounds, name)) is not None and value >= limit
    ]
    return "; ".join(found)


def _seen(grounds: Grounds) -> str:
    troubles = _troubles(grounds)
    return f" Seen, but not judged: {troubles}." if troubles else ""


def _unresolved(grounds: Grounds) -> Verdict:
    unknown, troubles = _unknown(grounds), _troubles(grounds)
    if unknown:
        what = f"No cause was found, and not all could be judged: {unknown}."
    elif troubles:
        what = "None of the judged causes applies."
    else:
        what = "None of the judged causes applies, yet throughput did not grow with the load."
    what += _seen(grounds)
    largest = sorted(grounds.ledger.mean, key=lambda row: -row.share)[:2]
    if largest:
        rows = ", ".join(f"{row.row} {units.share(row.share)}" for row in largest)
        what += f" Most of a request is {rows}."
    return Verdict(status="insufficient_evidence", summary=what)


def _unknown(grounds: Grounds) -> str:
    """Rules that could not be judged, those of the most time first; of loading only where it was watched."""
    found = [
        s
        for s in grounds.states
        if s.status == "unknown" and (grounds.loads_seen or s.cls not in LOAD_CLASSES)
    ]
    names = [s.rule for s in sorted(found, key=lambda s: -_at_stake_s(grounds.ledger, s))]
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _at_stake_s(ledger: Ledger, state: RuleState) -> float:
    """The longest row of a request that the rule would explain, or that was not divided into those."""
    whole = {row.partition(".")[0] for row in state.rows}
    return max((row.seconds for row in ledger.mean if row.row in whole.union(state.rows)), default=0.0)


def _value(grounds: Grounds, name: str) -> float | None:
    return grounds.table[name].value


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


# ------------------------------------------------------------------------------ the next command


def next_command(facts: RunFacts, verdict: Verdict, findings: Sequence[Finding], *, thin: bool) -> str:
    """What to type after reading the verdict."""
    causes = [f for f in findings if f.of != "measurement"]
    users = facts.scenario.load.concurrency
    if verdict.status == "found" and causes:
        offer = next((o for f in causes for o in f.fixes), None)
        return f"perfdoctor explain {offer.id if offer else causes[0].rule}"
    if verdict.status == "untrusted":
        if verdict.cls != "client-limited":
            return f"perfdoctor report {facts.run or 'latest'}"
        return (
            f"{_again(facts)} -c {max(1, users // 2)}" if users > 1 else "perfdoctor explain client-limited"
        )
    if facts.scenario.load.arrival == "none":
        return f"{_again(facts)} --duration 2m"
    if verdict.status in ("healthy", "insufficient_load"):
        return f"{_again(facts)} -c {2 * users}"
    return f"{_again(facts)} --duration 60s" if thin else "perfdoctor check"


def _again(facts: RunFacts) -> str:
    """The same diagnosis of the same target, without the numbers to change."""
    target, asked = facts.target, facts.scenario.target
    words = ["perfdoctor", "diagnose"]
    if target.kind == "endpoint":
        words += ["--endpoint", target.url or asked.endpoint or "URL"]
        model = asked.model
    else:
        model = asked.model or target.model or "tiny"
    if model:
        words += ["--model", model]
    if asked.api != "chat":
        words += ["--api", asked.api]
    if facts.scenario.load.arrival == "none":
        words.append("--no-load")
    return shlex.join(words)
