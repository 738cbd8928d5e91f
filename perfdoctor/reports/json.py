"""The published JSON: a Diagnosis, a LoadSummary and the like, in the shape that the shipped schemas promise.

Every key is always there, in a fixed order; what is not known is null, and so is what is not a number.
"""

from __future__ import annotations

import msgspec

from perfdoctor.errors import CannotJudge
from perfdoctor.model import Calibration, Comparison, Diagnosis, LoadSummary, Sweep, Trials, Verification
from perfdoctor.reports._bundle import Bundle, Report

_ENCODER = msgspec.json.Encoder(order="deterministic")  # writes NaN and infinity as null


def encode(
    document: Diagnosis | LoadSummary | Calibration | Sweep | Comparison | Verification | Trials,
) -> str:
    """Indented JSON text that ends with a newline."""
    return msgspec.json.format(_ENCODER.encode(document), indent=2).decode() + "\n"


def render(bundle: Bundle) -> str:
    """The diagnosis; the load test's summary where nothing was judged."""
    document = bundle.diagnosis or bundle.summary
    if document is None:
        raise CannotJudge(
            f"{bundle.facts.run or 'the run'} holds neither a diagnosis nor a load test",
            "It ended before the first request.",
            "repeat it: perfdoctor diagnose",
        )
    return encode(document)


REPORT = Report("json", render)
