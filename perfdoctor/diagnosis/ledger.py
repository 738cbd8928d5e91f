"""Request time and load time as disjoint rows that sum to the whole. `unexplained` is what is left.

Parts that claim more than the whole are cut, the first ones first served, and the row's source says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdoctor import stats, units
from perfdoctor.diagnosis import decode, loading, losses, prefill, spans, watched
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.diagnosis.remainder import UNEXPLAINED, left_of
from perfdoctor.model import Ledger, LedgerRow

OVERLAP_TOLD = 0.01  # of the whole; less is rounding of clocks
ROWS = (
    "client_wait", "connect", "network", "server_queue", "tokenise", "prefill", "prefill.memory",
    "prefill.compute", "prefill.launch_gap", "decode.memory", "decode.compute", "decode.launch_gap",
    "decode.sync", "decode.transfer", "decode", "allocator", "io_stall", "runq_delay", "gil_wait",
    "loop_stall", UNEXPLAINED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Account:
    """One request's seconds by row, `unexplained` included, summing to its total."""

    total_s: float
    rows: Mapping[str, float]


def keep(obs: Observations) -> Ledger:
    """The ledgers this run allows; `missing` says why there is none of requests."""
    load_rows = loading.load_rows(obs)
    try:
        splits = spans.split_requests(obs)
    except NoValue as error:
        try:
            return watched.keep(obs)
        except NoValue:
            return Ledger(load=load_rows, missing=error.reason)
    shares, lost = decode.decode_shares(obs), losses.service_losses(obs)
    reading = prefill.prefill_shares(obs)
    accounts = [_account(s, reading.shares, shares.shares, lost) for s in splits.requests]
    sources = _sources(splits, reading, shares) | {loss.row: loss.source for loss in lost}
    mean = _mean_rows(accounts, sources)
    return Ledger(
        mean=mean,
        p95=_rows_of_one(_at_p95(accounts), sources),
        load=load_rows,
        unexplained_share=next((r.share for r in mean if r.row == UNEXPLAINED), 0.0),
    )


def _account(
    split: spans.Split,
    prefill_shares: Mapping[str, float],
    decode_shares: Mapping[str, float],
    lost: Sequence[losses.Loss],
) -> _Account:
    """Losses are taken from prefill and decode alike, before these are divided."""
    rows = {row: seconds for row, seconds in split.parts.items() if row not in ("prefill", "decode")}
    reading, decoding = split.parts.get("prefill", 0.0), split.parts.get("decode", 0.0)
    for loss in lost:
        rows[loss.row] = loss.share * (reading + decoding)
    kept = 1 - math.fsum(loss.share for loss in lost)
    rows |= {row: reading * kept * share for row, share in prefill_shares.items()}
    rows |= {row: decoding * kept * share for row, share in decode_shares.items()}
    rows[UNEXPLAINED] = left_of(split.total_s, rows)
    return _Account(split.total_s, rows)


def _sources(
    splits: spans.Splits, reading: prefill.PrefillShares, shares: decode.DecodeShares
) -> dict[str, str]:
    whole = math.fsum(s.total_s for s in splits.requests)
    overlap = math.fsum(s.overlap_s for s in splits.requests)
    left = "what no source accounts for"
    if overlap > OVERLAP_TOLD * whole:
        left += f"; parts exceeded the whole by {units.share(overlap / whole)} and were cut"
    sources = dict.fromkeys(ROWS, splits.source) | dict.fromkeys(("client_wait", "connect"), spans.CLIENT)
    sources |= {row: shares.source for row in ROWS if row.startswith("decode")}
    sources |= {row: reading.source for row in ROWS if row.startswith("prefill.")}
    return sources | {UNEXPLAINED: left}


def _mean_rows(accounts: Sequence[_Account], sources: Mapping[str, str]) -> tuple[LedgerRow, ...]:
    """Means with the 95 % interval of the mean, from the spread between requests."""
    n = len(accounts)
    whole = math.fsum(a.total_s for a in accounts) / n
    rows = []
    for row in ROWS:
        values = [a.rows.get(row, 0.0) for a in accounts]
        seconds = math.fsum(values) / n
        if seconds <= 0 and row != UNEXPLAINED:
            continue
        half = 1.96 * _deviation(values, seconds) / math.sqrt(n)
        rows.append(
            LedgerRow(
                row=row,
                seconds=seconds,
                share=seconds / whole,
                low_s=max(0.0, seconds - half),
                high_s=min(whole, seconds + half),
                source=sources[row],
            )
        )
    return tuple(rows)


def _deviation(values: Sequence[float], mean: float) -> float:
    if len(values) < 2:
        return 0.0
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def _at_p95(accounts: Sequence[_Account]) -> _Account:
    """The request at the nearest rank, so that its rows are times somebody had."""
    limit = stats.percentile([a.total_s for a in accounts], 0.95)
    return next(a for a in accounts if a.total_s == limit)


def _rows_of_one(account: _Account, sources: Mapping[str, str]) -> tuple[LedgerRow, ...]:
    return tuple(
        LedgerRow(
            row=row,
            seconds=account.rows[row],
            share=account.rows[row] / account.total_s,
            source=sources[row],
        )
        for row in ROWS
        if account.rows.get(row, 0.0) > 0 or row == UNEXPLAINED
    )
