"""The busy window of a load, and the rates inside it. Pure.

Rates are taken where the load was the one that was asked for: in a closed loop from when every user had sent
to when the first had nothing left to send; in an open one from the first due instant to the last. A token
counts where it arrived, a request with the share of its tokens that arrived inside: the time it waited in a
queue is nothing that was served.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfdoctor import latency
from perfdoctor.model import Load, Rates, RequestRecord

PEAK_S = 1.0

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


def rates(load: Load, records: Sequence[RequestRecord], window: Window | None) -> Rates:
    """`records` with the warm-up's: what they still deliver inside counts too."""
    if window is None or window[1] <= window[0]:
        return Rates()
    width_s = window[1] - window[0]
    opens = load.arrival != "closed"
    due = [r for r in records if r.phase == "steady"]
    return Rates(
        requests_per_s=sum(_part_inside(r, window) for r in records if r.outcome == "ok") / width_s,
        output_tokens_per_s=_per_s(tokens_inside(records, window), width_s),
        input_tokens_per_s=_per_s(_prompts_inside(records, window), width_s),
        peak_output_tokens_per_s=_peak(records, window),
        asked_per_s=(load.rate or _mean_rate(due, width_s)) if opens else None,
        sent_per_s=_sent_per_s(due) if opens else None,
        in_flight_mean=sum(_overlap_s(r, window) for r in records) / width_s,
        in_flight_max=_most_open(records, window),
    )


def tokens_inside(records: Sequence[RequestRecord], window: Window | None) -> float | None:
    """None where no answer's tokens were counted."""
    counted = [r for r in records if r.output_tokens is not None]
    if not counted or window is None:
        return None
    start_s, end_s = window
    return sum(weight for r in counted for at, weight in arrivals(r) if start_s < at <= end_s)


def arrivals(record: RequestRecord) -> list[tuple[float, float]]:
    """(instant, tokens) of each chunk; where the server did not tell, spread evenly over the chunks.

    The tokens of an answer in one piece arrived at its end.
    """
    chunks, tokens = record.token_at_s, record.output_tokens or 0
    if not chunks:
        return [(record.end_s, tokens)] if record.end_s is not None and record.outcome == "ok" else []
    if record.token_counts:
        return list(zip(chunks, record.token_counts, strict=True))
    return [(at, tokens / len(chunks)) for at in chunks]


def _mean_rate(due: Sequence[RequestRecord], width_s: float) -> float | None:
    """Of a ramp or a replay: what its schedule came to."""
    return (len(due) - 1) / width_s if len(due) > 1 else None


def _per_s(amount: float | None, width_s: float) -> float | None:
    return None if amount is None else amount / width_s


def _part_inside(record: RequestRecord, window: Window) -> float:
    """Share of a request that was served in the window; one without tokens was served when it ended."""
    stamps = record.token_at_s or ((record.end_s,) if record.end_s is not None else ())
    inside = sum(window[0] < at <= window[1] for at in stamps)
    return inside / len(stamps) if stamps else 0.0


def _prompts_inside(records: Sequence[RequestRecord], window: Window) -> float | None:
    """Prompt tokens of the answers that began in the window."""
    told = [r for r in records if r.prompt_tokens is not None]
    if not told:
        return None
    begun = ((r.first_token_s or latency.answered_s(r), r.prompt_tokens or 0) for r in told)
    return float(sum(tokens for at, tokens in begun if at is not None and window[0] < at <= window[1]))


def _sent_per_s(due: Sequence[RequestRecord]) -> float | None:
    sent = [r.sent_s for r in due if r.sent_s is not None]
    span_s = max(sent, default=0.0) - min(sent, default=0.0)
    return (len(sent) - 1) / span_s if span_s > 0 else None


def _overlap_s(record: RequestRecord, window: Window) -> float:
    if record.sent_s is None or record.end_s is None:
        return 0.0
    return max(0.0, min(record.end_s, window[1]) - max(record.sent_s, window[0]))


def _most_open(records: Sequence[RequestRecord], window: Window) -> int:
    events = []
    for r in records:
        if r.sent_s is not None and r.end_s is not None and r.sent_s <= window[1] and r.end_s > window[0]:
            events += [(r.sent_s, 1), (r.end_s, -1)]
    most = now = 0
    for at_s, change in sorted(events):
        now += change
        if at_s <= window[1]:
            most = max(most, now)
    return most


def _peak(records: Sequence[RequestRecord], window: Window) -> float | None:
    """Most tokens in any one second of the window; None in a shorter one."""
    if window[1] - window[0] < PEAK_S:
        return None
    found = sorted(pair for r in records for pair in arrivals(r) if window[0] < pair[0] <= window[1])
    best = inside = 0.0
    oldest = 0
    for at, weight in found:
        inside += weight
        while found[oldest][0] <= at - PEAK_S:
            inside -= found[oldest][1]
            oldest += 1
        best = max(best, inside)
    return round(best / PEAK_S, 6) if best else None  # the sum drifts in its last digits
