"""The records that cross stages, frozen, and nothing else.

Every type is a frozen `msgspec.Struct`, so that one declaration gives the JSON form, the reader, the
validation and the JSON Schema. Times are seconds since the run's monotonic zero, shares are 0-1, and None
always means "not known", never zero. Imports nothing of ours.
"""

from perfdoctor.model._record import SCHEMA_VERSION, Confidence, PhaseName, ProbeStatus, Record, RuleStatus
from perfdoctor.model.calibrated import Calibration, CalibrationLevel
from perfdoctor.model.facts import ClientFacts, GpuFacts, HostFacts, RunFacts, TargetFacts
from perfdoctor.model.judged import (
    Diagnosis,
    Evidence,
    Finding,
    FixOffer,
    Ledger,
    LedgerRow,
    Measured,
    Roof,
    RuleState,
    Signal,
    Trust,
    Verdict,
    Violation,
)
from perfdoctor.model.observed import Metric, ProbeState, RequestRecord, Sample
from perfdoctor.model.orders import Api, Arrival, Load, Phase, Prompts, Scenario, Target, Wire
from perfdoctor.model.summary import (
    Arrivals,
    Interval,
    LoadSummary,
    Rates,
    RequestCounts,
    ServerView,
    SloResult,
    SloTerm,
    Spread,
    StyleRow,
    TokenCounts,
)
from perfdoctor.model.swept import Decision, Knee, Over, Sweep, SweepLevel, WithinSlo

__all__ = [
    "SCHEMA_VERSION",
    "Api",
    "Arrival",
    "Arrivals",
    "Calibration",
    "CalibrationLevel",
    "ClientFacts",
    "Confidence",
    "Decision",
    "Diagnosis",
    "Evidence",
    "Finding",
    "FixOffer",
    "GpuFacts",
    "HostFacts",
    "Interval",
    "Knee",
    "Ledger",
    "LedgerRow",
    "Load",
    "LoadSummary",
    "Measured",
    "Metric",
    "Over",
    "Phase",
    "PhaseName",
    "ProbeState",
    "ProbeStatus",
    "Prompts",
    "Rates",
    "Record",
    "RequestCounts",
    "RequestRecord",
    "Roof",
    "RuleState",
    "RuleStatus",
    "RunFacts",
    "Sample",
    "Scenario",
    "ServerView",
    "Signal",
    "SloResult",
    "SloTerm",
    "Spread",
    "StyleRow",
    "Sweep",
    "SweepLevel",
    "Target",
    "TargetFacts",
    "TokenCounts",
    "Trust",
    "Verdict",
    "Violation",
    "Wire",
    "WithinSlo",
]
