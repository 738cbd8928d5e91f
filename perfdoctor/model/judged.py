"""Signals, ledger, findings: what judging makes of a run."""

from __future__ import annotations

from typing import Literal

import msgspec

from perfdoctor.model._record import SCHEMA_VERSION, Confidence, Record, RuleStatus
from perfdoctor.model.facts import RunFacts
from perfdoctor.model.observed import ProbeState


class Signal(Record, frozen=True, kw_only=True):
    """A derived number a rule may test. `value` None carries the reason in `missing`."""

    name: str
    value: float | None
    unit: str
    n: int | None = None
    missing: str | None = None
    source: str | None = None  # where the number came from, if it has more than one possible source
    low: float | None = None  # between what the true number lies, where it is only known to be so: of a
    high: float | None = None  # percentile from a histogram, the edges of its bucket


class LedgerRow(Record, frozen=True, kw_only=True):
    row: str
    seconds: float
    share: float
    low_s: float | None = None
    high_s: float | None = None
    source: str = ""


class Ledger(Record, frozen=True, kw_only=True):
    """Request time split into disjoint rows that sum to it; `load` does the same for model loading."""

    mean: tuple[LedgerRow, ...] = ()
    p95: tuple[LedgerRow, ...] = ()
    load: tuple[LedgerRow, ...] = ()
    unexplained_share: float | None = None
    missing: str | None = None


class Evidence(Record, frozen=True, kw_only=True):
    signal: str
    value: float | None
    unit: str
    comparison: Literal["below", "at_least"]
    limit: float
    source: str


class Measured(Record, frozen=True, kw_only=True):
    """One measurement of a fix. `ratio` is time without it over time with it: above 1 it helped."""

    hardware: str
    model: str
    versions: str
    ratio: float
    interval: tuple[float, float] | None = None  # of the ratio; None: one run of each, which proves little
    how: str


class FixOffer(Record, frozen=True, kw_only=True):
    """A fix matched to a finding, with this run's numbers filled in."""

    id: str
    title: str
    verdict: Literal["confirmed", "conditional", "refuted"]
    bound: tuple[float, float] | None = None  # speed-up factor, from the ledger (Amdahl); None: unknown
    source: str = ""
    claim: str = ""
    precondition: str = ""
    contraindication: str = ""
    risk: str = ""
    changes_output: bool | Literal["maybe"] | None = None  # maybe: within rounding, or by how it is set
    needs_restart: bool | None = None  # of the server
    first_call: str = ""  # what the first start or call costs beyond the usual; empty: nothing
    rollback: str = ""
    measured: tuple[Measured, ...] = ()
    commands: tuple[str, ...] = ()
    verify: str = ""


class Finding(Record, frozen=True, kw_only=True):
    rule: str
    cls: str = msgspec.field(name="class")
    title: str
    status: RuleStatus
    confidence: Confidence = "low"
    share: float | None = None
    seconds: tuple[float, float] | None = None  # attributable, per request (or of the load), low and high
    run_seconds: float | None = None  # the same over this run's wall clock; ranks findings
    of: Literal["request", "load", "measurement"] = "request"
    evidence: tuple[Evidence, ...] = ()
    excluded: tuple[str, ...] = ()
    explained_by: str | None = None
    where: tuple[str, ...] = ()  # who was seen at it: threads, or stacks from the innermost frame
    summary: str = ""
    fixes: tuple[FixOffer, ...] = ()


class RuleState(Record, frozen=True, kw_only=True):
    rule: str
    cls: str = msgspec.field(name="class")
    status: RuleStatus
    reason: str = ""
    rows: tuple[str, ...] = ()  # of the ledger: the time that a hit would explain


class Trust(Record, frozen=True, kw_only=True):
    status: Literal["valid", "degraded", "invalid"]
    error_s: float | None = None
    reasons: tuple[str, ...] = ()


class Verdict(Record, frozen=True, kw_only=True):
    status: Literal["found", "healthy", "insufficient_load", "insufficient_evidence", "untrusted"]
    cls: str | None = msgspec.field(name="class", default=None)
    summary: str = ""


class Roof(Record, frozen=True, kw_only=True):
    physical_share: float | None = None
    achievable_share: float | None = None
    binding: str | None = None
    assumptions: tuple[str, ...] = ()
    missing: str | None = None


class Violation(Record, frozen=True, kw_only=True):
    law: str
    what: str
    likely: str
    stops: tuple[str, ...] = ()  # rule classes that rest on the impossible number


class LawState(Record, frozen=True, kw_only=True):
    """A law that no honest measurement breaks. `reason`: what is impossible, or why nothing tests it here."""

    law: str
    says: str
    status: Literal["holds", "broken", "unknown"]
    reason: str = ""


class Diagnosis(Record, frozen=True, kw_only=True):
    """The one input of every report. Every field of the published JSON contract, additive only."""

    schema: int = SCHEMA_VERSION
    run: str
    state: str = "complete"
    trust: Trust
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    rules: tuple[RuleState, ...] = ()
    ledger: Ledger = Ledger()
    roof: Roof = Roof()
    violated_laws: tuple[Violation, ...] = ()
    laws: tuple[LawState, ...] = ()
    unmeasured: tuple[ProbeState, ...] = ()
    signals: tuple[Signal, ...] = ()
    facts: RunFacts = RunFacts()
    next: str = ""
