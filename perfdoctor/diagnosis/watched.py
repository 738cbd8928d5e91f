"""Traffic that others send, seen through the server's own counters: what a window added, never totals.

Means only: a histogram's sum and count give no more. Queue, prefill and decode are the server's; what its end
to end has beyond them is unexplained. Losses and shares are taken as they are for a load of our own.
"""

from __future__ import annotations

import math

from perfdoctor.diagnosis import decode, losses, prefill
from perfdoctor.diagnosis.counted import SOURCE, mean_of, watches
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.diagnosis.remainder import UNEXPLAINED
from perfdoctor.model import Ledger, LedgerRow


def keep(obs: Observations) -> Ledger:
    """NoValue where a load was driven, or the server tells no end to end."""
    if not watches(obs):
        raise NoValue("a load was driven: its own requests are the better source")
    whole = mean_of(obs, "e2e")
    queue, reading, decoding = mean_of(obs, "queue"), mean_of(obs, "prefill"), mean_of(obs, "decode")
    lost, split, steps = losses.service_losses(obs), prefill.prefill_shares(obs), decode.decode_shares(obs)
    kept = 1 - math.fsum(loss.share for loss in lost)
    rows = {"server_queue": (queue, SOURCE)}
    rows |= {loss.row: (loss.share * (reading + decoding), loss.source) for loss in lost}
    rows |= {row: (reading * kept * share, split.source) for row, share in split.shares.items()}
    rows |= {row: (decoding * kept * share, steps.source) for row, share in steps.shares.items()}
    left = max(0.0, whole - math.fsum(seconds for seconds, _ in rows.values()))
    rows[UNEXPLAINED] = (left, "what no source accounts for")
    mean = tuple(
        LedgerRow(row=row, seconds=seconds, share=min(1.0, seconds / whole), source=source)
        for row, (seconds, source) in rows.items()
        if seconds > 0 or row == UNEXPLAINED
    )
    return Ledger(mean=mean, unexplained_share=left / whole)
