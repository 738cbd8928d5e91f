"""From a run folder to a line of the sweep's table."""

from __future__ import annotations

from pathlib import Path

import msgspec

from perfdoctor import latency, store
from perfdoctor.errors import PerfdoctorError
from perfdoctor.loadgen.summary import summarise
from perfdoctor.model import LoadSummary, RequestRecord, SweepLevel
from perfdoctor.sweep._backlog import served_share
from perfdoctor.sweep._decide import decide
from perfdoctor.sweep._steps import ENOUGH


def measured(row: SweepLevel, folder: Path, slo: str | None) -> SweepLevel:
    """The row with what the run below `folder` holds; `slo` replaces the run's own."""
    run = store.open_run(folder / row.run)
    records = run.read_requests()
    summary = summarise(run.facts, run.state, records, run.read_samples(), slo)
    filled = fill(row, summary, records, slo or run.facts.scenario.load.slo)
    return msgspec.structs.replace(filled, error=row.error or run.facts.error)


def failed(row: SweepLevel, error: PerfdoctorError) -> SweepLevel:
    return msgspec.structs.replace(row, state="failed", error=error.what, exit_code=error.exit_code)


def fill(
    row: SweepLevel, summary: LoadSummary, records: tuple[RequestRecord, ...], slo: str | None
) -> SweepLevel:
    steady = [r for r in latency.without_prompt_tail(records) if r.phase == "steady"]
    answered = latency.ok_records(steady)
    decision, reasons = decide(slo, answered, summary) if slo else (None, [])
    met = summary.slo.met if summary.slo else None
    if slo and summary.stopped:
        decision, met, reasons = "missed", False, [summary.stopped]
    elif slo and summary.trust.status == "invalid":
        decision, reasons = "not_decided", ["the measurement cannot be trusted", *reasons]
    counts, rates = summary.requests, summary.rates
    enough = len(answered) >= ENOUGH
    return msgspec.structs.replace(
        row,
        state=summary.state,
        requests=counts.total - counts.not_sent,
        failed=sum(counts.failed.values()),
        cut_off=counts.censored - counts.not_sent,
        sent_per_s=rates.sent_per_s,
        served_share=served_share(steady) if summary.arrivals else None,
        requests_per_s=rates.requests_per_s,
        output_tokens_per_s=rates.output_tokens_per_s,
        ttft_p50_s=summary.ttft.p50,
        ttft_p95_s=summary.ttft.p95 if enough else None,
        tpot_p50_s=summary.tpot.p50,
        e2e_p50_s=summary.e2e.p50,
        e2e_p95_s=summary.e2e.p95 if enough else None,
        trust=summary.trust,
        slo=decision,
        slo_met=met,
        slo_reasons=tuple(reasons),
        stopped=summary.stopped,
    )
