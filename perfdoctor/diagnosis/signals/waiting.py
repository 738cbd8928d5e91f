"""Rows of the ledger as signals: what part of a request passes where, for rules that test it."""

from __future__ import annotations

from perfdoctor.diagnosis import spans
from perfdoctor.diagnosis.measure import Measure, Reading
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.stats import mean

_ROWS = {
    "tokenise": "the server turned text into tokens",
    "prefill": "the model read the prompt",
    "network": "bytes were on their way, as far as both ends' stamps tell",
    "connect": "the client connected",
}


def _share(row: str, meaning: str) -> Measure:
    def compute(obs: Observations) -> Reading:
        found = spans.split_requests(obs)
        if not found.has(row):
            raise NoValue(f"nothing here tells {row} time apart ({found.source})")
        whole = mean([s.total_s for s in found.requests]) or 1.0
        return Reading(found.mean(row) / whole, n=len(found.requests), source=found.source)

    page = (
        f"Share of the mean request time in which {meaning}, 0-1.\n\n"
        "From the most direct source of the run. Missing when none separates it. Cross-check: the ledger."
    )
    return Measure(f"request.{row}.share", "share", compute, page)


SIGNALS = tuple(_share(row, meaning) for row, meaning in _ROWS.items())
