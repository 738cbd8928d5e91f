"""The wording that all formats share, so that terminal, HTML and Markdown say the same. Pure.

Every function returns plain text; each format escapes it in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfdoctor import latency, units
from perfdoctor.model import (
    Diagnosis,
    Evidence,
    Finding,
    FixOffer,
    LedgerRow,
    Measured,
    ProbeState,
    RequestRecord,
    Roof,
    RuleState,
    RunFacts,
    TargetFacts,
    Trust,
)
from perfdoctor.reports._bundle import Bundle

CLASSES = {
    "disk-io": "Disk IO while loading",
    "page-cache": "Page-cache refaults",
    "memory-bandwidth": "Memory bandwidth",
    "small-kernels": "Small kernels",
    "scheduling": "Scheduling",
    "overload": "Overload",
    "launch-overhead": "Launch and host overhead",
    "gil": "GIL contention",
    "cpu-contention": "CPU contention",
    "event-loop": "Blocked event loop",
    "tokenizer": "Tokeniser",
    "compute-prefill": "Compute-bound prefill",
    "kv-cache": "KV-cache capacity",
    "fragmentation": "Memory fragmentation",
    "pcie-offload": "PCIe transfer",
    "throttling": "Throttling",
    "numa": "NUMA placement",
    "network": "Network",
    "client-limited": "Limited by the client",
    "insufficient-load": "Too little load",
    "healthy": "Healthy",
}
VERDICTS = {
    "found": "Cause found",
    "healthy": "Healthy",
    "insufficient_load": "Too little load to judge",
    "insufficient_evidence": "Too little evidence to judge",
    "untrusted": "Measurement not trusted",
}
ANSWERS: dict[bool | str | None, str] = {
    None: "", False: "answers stay", True: "changes answers", "maybe": "may change answers"
}  # fmt: skip
RESTART = {None: "", False: "no restart", True: "restart"}
interval = units.interval  # for the templates, which see this module
COMPARISONS = {"below": "below", "at_least": "at least"}
OF = {"request": "of request time", "load": "of load time", "measurement": "of measured time"}
RANDOM_WEIGHTS = "The weights are random: the timing is real, the generated text is not."
ENDINGS = {
    "interrupted": "The run was interrupted: the numbers cover only what was recorded before.",
    "failed": "The run failed: the numbers cover only what was recorded before.",
    "running": "The run is still going on: the numbers cover only what is recorded so far.",
}


def class_title(cls: str | None) -> str:
    return CLASSES.get(cls, cls) if cls else ""


def verdict_title(diagnosis: Diagnosis) -> str:
    """`Cause found: Scheduling`; without a class, or where it repeats the status, the status alone."""
    status = VERDICTS[diagnosis.verdict.status]
    cls = diagnosis.verdict.cls
    return f"{status}: {class_title(cls)}" if cls and diagnosis.verdict.status == "found" else status


def bound(offer: FixOffer) -> str:
    """What the fix may gain; never more than the ledger allows, so always `at most`."""
    if offer.bound is None:
        return "gain not known"
    low, high = (units.number(x) for x in offer.bound)
    return f"at most {low}x faster" if low == high else f"at most {low}-{high}x faster"


def effects(changes_output: bool | str | None, needs_restart: bool | None, first_call: str) -> str:
    """`may change answers; restart; first call: 30-50 s of compilation`, as far as known."""
    first = f"first call: {first_call}" if first_call else ""
    return "; ".join(part for part in (ANSWERS[changes_output], RESTART[needs_restart], first) if part)


def measured(one: Measured) -> str:
    """`14.6x (12.1-16.0) on one H200`, with what and how; without an interval it says so."""
    between = "-".join(units.number(end) for end in one.interval) if one.interval else "one run"
    return f"{units.number(one.ratio)}x ({between}) on {one.hardware}: {one.model}, {one.versions}; {one.how}"


def offered(finding: Finding) -> tuple[FixOffer, ...]:
    """The fixes worth showing. A refuted one is never advice, whoever put it there."""
    return tuple(f for f in finding.fixes if f.verdict != "refuted")


def first_fix(diagnosis: Diagnosis) -> FixOffer | None:
    """Of the first finding that has one; a finding explained by another waits for that one's fix."""
    own = sorted(diagnosis.findings, key=lambda f: f.explained_by is not None)
    return next((offer for finding in own for offer in offered(finding)), None)


def cost(finding: Finding) -> str:
    """`84 % of request time (20-24 ms each)`, as far as known."""
    share = f"{units.share(finding.share)} {OF[finding.of]}" if finding.share is not None else ""
    if finding.seconds is None:
        return share
    each = " each" if finding.of == "request" else ""
    seconds = interval(*finding.seconds, "s") + each
    return f"{share} ({seconds})" if share else seconds


def evidence(item: Evidence) -> tuple[str, str, str, str, str]:
    """Signal, value, comparison, limit, source of the limit."""
    return (
        item.signal,
        units.quantity(item.value, item.unit),
        COMPARISONS[item.comparison],
        units.quantity(item.limit, item.unit),
        item.source,
    )


def trust(verdict: Trust, bundle: Bundle) -> str:
    """The measurement's own quality: what was counted, and how far off it may be."""
    parts = [f"{requests_counted(bundle)}"]
    if verdict.error_s is not None:
        parts.append(f"timing error {units.seconds(verdict.error_s)}")
    if probes_cost := _probe_cost(bundle.facts):
        parts.append(probes_cost)
    return "; ".join(parts)


def requests_counted(bundle: Bundle) -> str:
    if bundle.summary is not None:
        total, ok = bundle.summary.requests.total, bundle.summary.requests.ok
    else:
        steady = of_phase(bundle.requests, "steady")
        total, ok = len(steady), len(latency.ok_records(steady))
    return f"{units.number(ok)} of {units.number(total)} requests ok" if total else "no requests"


def _probe_cost(facts: RunFacts) -> str:
    used = [p for p in facts.probes if p.samples]
    span = run_seconds(facts)
    if not used or not span:
        return ""
    late, spent = max(p.late_max_s for p in used), sum(p.cost_s for p in used)
    return f"probes late at most {units.seconds(late)}, cost {units.share(spent / span)} of a core"


def run_seconds(facts: RunFacts) -> float | None:
    """From the first phase's start to the last one's end."""
    if not facts.phases:
        return None
    return max(p.end_s for p in facts.phases) - min(p.start_s for p in facts.phases)


def target(facts: TargetFacts) -> str:
    """The patient in one line: model, engine, place, size."""
    known = [
        facts.model or "unknown model",
        "random weights" if facts.weights_random else None,
        f"{facts.engine} {facts.engine_version or ''}".strip() + _place(facts),
        facts.device,
        facts.dtype,
        f"{units.number(facts.parameters)} parameters" if facts.parameters else None,
    ]
    return ", ".join(part for part in known if part)


def _place(facts: TargetFacts) -> str:
    if facts.kind == "local":
        return " (child process)"
    return f" at {facts.url}" if facts.url else ""


def notices(bundle: Bundle) -> tuple[str, ...]:
    """What a reader must know before the numbers."""
    judged = bundle.diagnosis or bundle.summary
    state = judged.state if judged else bundle.facts.state
    found = [RANDOM_WEIGHTS] if bundle.facts.target.weights_random else []
    if state in ENDINGS:
        found.append(ENDINGS[state])
    if bundle.facts.error:
        found.append(bundle.facts.error)
    return (*found, *bundle.facts.notes)


def ledger_title(rows: Sequence[LedgerRow], what: str) -> str:
    """`mean request, 1.3 s`: the rows are disjoint, so they sum to the whole."""
    return f"{what} {units.seconds(sum(r.seconds for r in rows))}"


def roof(value: Roof) -> str:
    if value.missing:
        return f"not known: {value.missing}"
    parts = []
    if value.physical_share is not None:
        parts.append(f"{units.share(value.physical_share)} of the physical limit")
    if value.achievable_share is not None:
        parts.append(f"{units.share(value.achievable_share)} of the achievable")
    if value.binding:
        parts.append(f"binding: {value.binding}")
    return ", ".join(parts)


def server_percentiles(diagnosis: Diagnosis) -> str:
    """`ttft p50 250-500 ms, p95 1-2.5 s (n 80); queue ...`, by the server's own histograms."""
    by_name: dict[str, list[str]] = {}
    counts: dict[str, int | None] = {}
    for signal in diagnosis.signals:
        if signal.low is not None and signal.high is not None:
            _, name, label = signal.name.split(".")
            by_name.setdefault(name, []).append(f"{label} {interval(signal.low, signal.high, signal.unit)}")
            counts[name] = signal.n
    return "; ".join(
        f"{name} {', '.join(parts)} (n {units.number(counts[name])})" for name, parts in by_name.items()
    )


def unmeasured(diagnosis: Diagnosis) -> tuple[ProbeState, ...]:
    """Probes that did not work, and those that did and miss some of their metrics."""
    partly = (p for p in diagnosis.facts.probes if p.status == "ok" and p.gaps)
    return (*diagnosis.unmeasured, *partly)


def probe_problem(state: ProbeState) -> str:
    """`denied: ptrace_scope is 1`; of a probe that works, what it misses."""
    if state.status == "ok":
        return state.why or "ok"
    return f"{state.status}: {state.why}" if state.why else state.status


def rules_with(diagnosis: Diagnosis, status: str) -> tuple[RuleState, ...]:
    return tuple(r for r in diagnosis.rules if r.status == status)


def laws_that_hold(diagnosis: Diagnosis) -> tuple[str, ...]:
    """`L1`, `L7`: those that were tested, in any of their parts, and never broken."""
    broken = {law.law for law in diagnosis.laws if law.status == "broken"}
    held = (law.law for law in diagnosis.laws if law.status == "holds")
    return tuple(name for name in dict.fromkeys(held) if name not in broken)


def untested_laws(diagnosis: Diagnosis) -> dict[str, str]:
    """Those of which no part could be tested, each with its reason."""
    tested = {law.law for law in diagnosis.laws if law.status != "unknown"}
    reasons: dict[str, list[str]] = {}
    for law in diagnosis.laws:
        if law.law not in tested:
            reasons.setdefault(law.law, []).append(law.reason)
    return {name: "; ".join(dict.fromkeys(found)) for name, found in reasons.items()}


def of_phase(records: Sequence[RequestRecord], phase: str) -> tuple[RequestRecord, ...]:
    return tuple(r for r in records if r.phase == phase)
