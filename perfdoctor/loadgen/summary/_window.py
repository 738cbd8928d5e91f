"""The busy window of a load, and the rates inside it. Pure.

Rates are taken where the load was the one that was asked for: in a closed loop from when every user had sent
to when the first had nothing left to send; in an open one from the first due instant to the last. A token
counts where it arrived, a request with the share of its tokens that arrived inside: the time it waited in a
queue is nothing that was served.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from perfdoctor import latency
from perfdoctor.loadgen.summary._columns import Delivered, Open
from perfdoctor.model import Load, Rates, RequestRecord

PEAK_S = 1.0  # a peak is taken over about a second: shorter ones show how chunks are batched

Window = tuple[float, float]


def find_window(
    load: Load, steady: Sequence[RequestRecord], before: Sequence[RequestRecord]
) -> Window | None:
    """`before` are the warm-up's requests: where some are still open, the users are busy from the start."""
    if load.arrival != "closed":
        due = [r.due_s for r in steady]
        return (min(due), max(due)) if due and max(due) > min(due) else busy_window(steady, 1)
    window = busy_window(steady, load.concurrency)
    if window is None:
        return None
    first_s = min(r.sent_s for r in steady if r.sent_s is not None)
    handed_over = any(r.end_s is not None and r.end_s > first_s for r in before)
    return (first_s, window[1]) if handed_over else window


def busy_window(records: Sequence[RequestRecord], users: int) -> Window | None:
    """(start, end) of the time in which all users had a request open.

    With fewer requests than users, or when the first answer came before the last user had sent, there is no
    such time, and the window is the whole span instead. None without requests.
    """
    sent = sorted(r.sent_s for r in records if r.sent_s is not None)
    ended = sorted(r.end_s for r in records if r.end_s is not None)
    if not sent or not ended:
        return None
    whole = (sent[0], ended[-1])
    if min(len(sent), len(ended)) < users:
        return whole
    start, end = sent[users - 1], ended[-users]
    return (start, end) if end > start else whole


def rates(
    load: Load, records: Sequence[RequestRecord], window: Window | None, tokens: Delivered, flying: Open
) -> Rates:
    """All with the warm-up's requests: what they still deliver inside counts too."""
    if window is None or window[1] <= window[0]:
        return Rates()
    width_s = window[1] - window[0]
    opens = load.arrival != "closed"
    due = [r for r in records if r.phase == "steady"]
    served = math.fsum(_part_inside(r, window) for r in records if r.outcome == "ok")
    prompts = _prompts_inside(records, window)
    return Rates(
        start_s=window[0],
        end_s=window[1],
        requests_per_s=served / width_s,
        output_tokens_per_s=tokens.within(*window) / width_s if tokens.counted else None,
        input_tokens_per_s=None if prompts is None else prompts / width_s,
        peak_output_tokens_per_s=_peak(tokens, window),
        asked_per_s=(load.rate or _mean_rate(due, width_s)) if opens else None,
        sent_per_s=_sent_per_s(due) if opens else None,
        in_flight_mean=flying.means(window)[0],
        in_flight_max=flying.most(*window),
    )


def _mean_rate(due: Sequence[RequestRecord], width_s: float) -> float | None:
    """Of a ramp or a replay: what its schedule came to."""
    return (len(due) - 1) / width_s if len(due) > 1 else None


def _part_inside(record: RequestRecord, window: Window) -> float:
    """Share of a request that was served in the window; one without tokens was served when it ended."""
    stamps = record.token_at_s
    if not stamps:
        return float(record.end_s is not None and window[0] < record.end_s <= window[1])
    return sum(window[0] < at <= window[1] for at in stamps) / len(stamps)


def _prompts_inside(records: Sequence[RequestRecord], window: Window) -> int | None:
    """Prompt tokens of the answers that began in the window."""
    told = [r for r in records if r.prompt_tokens is not None]
    if not told:
        return None
    begun = ((r.first_token_s or latency.answered_s(r), r.prompt_tokens or 0) for r in told)
    return sum(tokens for at, tokens in begun if at is not None and window[0] < at <= window[1])


def _sent_per_s(due: Sequence[RequestRecord]) -> float | None:
    sent = [r.sent_s for r in due if r.sent_s is not None]
    span_s = max(sent, default=0.0) - min(sent, default=0.0)
    return (len(sent) - 1) / span_s if span_s > 0 else None


def _peak(tokens: Delivered, window: Window) -> float | None:
    """Most tokens a second in any stretch of about one second; None in a window shorter than that.

    The stretch divides the window into whole ones, so that a peak is never below the mean.
    """
    width_s = window[1] - window[0]
    if width_s < PEAK_S:
        return None
    stretch_s = width_s / math.floor(width_s / PEAK_S)
    most = tokens.most_in(stretch_s, *window)
    return round(most / stretch_s, 6) if most else None  # the sums drift in their last digits
