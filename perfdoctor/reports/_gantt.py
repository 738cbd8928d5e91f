"""Requests as lanes of a timeline: queued, prefill, decode and failures, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perfdoctor import latency, units
from perfdoctor.model import RequestRecord, Sample
from perfdoctor.reports import _series, _svg

MOST = 8000  # requests drawn; above this an even pick
MOST_TITLED = 500  # above this many the segments share one path a kind, without pointer titles
HEIGHT_MAX = 260.0
LANE_MAX, LANE_MIN = 13.0, 1.2

Segment = tuple[str, float, float]  # kind, start, end in seconds
KINDS = {
    "queued": "queued",
    "wait": "until the first token",
    "prefill": "prefill",
    "decode": "decode",
    "failed": "failed (×)",
    "open": "still open",
}


def starts(samples: Sequence[Sample]) -> dict[str, float]:
    """Request id to the instant at which the server says it began to work on it."""
    told = ((s.labels.get("request"), s.values.get("started_s")) for s in samples if s.probe == "serve")
    return {ident: at for ident, at in told if ident is not None and at is not None}


def segments(record: RequestRecord, started_s: float | None, run_end_s: float) -> tuple[Segment, ...]:
    """A request's stretches in order. Queue and prefill are told apart only where the server says so."""
    start, end = _series.begin(record), _series.finish(record, run_end_s)
    if record.censored:
        return (("open", start, end),)
    if record.outcome != "ok":
        return (("failed", start, end),)
    first = record.first_token_s
    if first is None:
        return (("wait", start, end),)
    if started_s is None and record.server_prefill_s is not None:
        started_s = first - record.server_prefill_s
    if started_s is None or not start <= started_s <= first:
        return (("wait", start, first), ("decode", first, end))
    return (("queued", start, started_s), ("prefill", started_s, first), ("decode", first, end))


def draw(
    records: Sequence[RequestRecord],
    began: Mapping[str, float],
    x: _svg.Scale,
    top: float,
) -> tuple[float, tuple[str, ...], list[str]]:
    """Height used, the kinds that occur, and the markup."""
    placed = _series.lanes(_series.evenly(records, MOST), x.high)
    count = max(lane for lane, _ in placed) + 1
    pitch = min(LANE_MAX, max(LANE_MIN, HEIGHT_MAX / count))
    cut = [
        (top + lane * pitch, record, segments(record, began.get(str(record.id)), x.high))
        for lane, record in placed
    ]
    kinds = tuple(k for k in KINDS if any(k == s[0] for _, _, parts in cut for s in parts))
    thick = max(1.0, pitch - (2.0 if pitch > 5 else 0.4))
    if len(cut) <= MOST_TITLED:
        body = [_titled(y, record, parts, x, thick) for y, record, parts in cut]
    else:
        body = [_shared(kind, cut, x, thick) for kind in kinds]
    if pitch > 5:
        body += list(_crosses(cut, x, thick))
    return count * pitch, kinds, body


def _titled(y: float, record: RequestRecord, parts: Sequence[Segment], x: _svg.Scale, thick: float) -> str:
    """One request as a group that tells its numbers to a pointer."""
    boxes = "".join(
        _svg.element("rect", x=x(a), y=y, width=max(0.6, x(b) - x(a)), height=thick, class_=f"k-{kind}")
        for kind, a, b in parts
    )
    return _svg.element("g", _svg.title(_described(record, parts)) + boxes)


def _described(record: RequestRecord, parts: Sequence[Segment]) -> str:
    spans = ", ".join(f"{kind} {units.seconds(b - a)}" for kind, a, b in parts)
    outcome = "" if record.outcome == "ok" else f", {record.outcome}: {record.error or 'no detail'}"
    whole = latency.e2e(record)
    total = f", end to end {units.seconds(whole)}" if whole is not None else ""
    return f"request {record.id} ({record.phase}): {spans}{total}{outcome}"


def _shared(
    kind: str,
    cut: Sequence[tuple[float, RequestRecord, tuple[Segment, ...]]],
    x: _svg.Scale,
    thick: float,
) -> str:
    """All segments of a kind as one stroked path: a tenth of the bytes of single boxes."""
    parts = [
        f"M{_svg.pixel(x(a))} {_svg.pixel(y + thick / 2)}h{_svg.pixel(max(0.3, x(b) - x(a)))}"
        for y, _, segments_ in cut
        for k, a, b in segments_
        if k == kind
    ]
    return _svg.element("path", d="".join(parts), class_=f"l-{kind}", stroke_width=thick)


def _crosses(
    cut: Sequence[tuple[float, RequestRecord, tuple[Segment, ...]]], x: _svg.Scale, thick: float
) -> Iterator[str]:
    for y, record, parts in cut:
        if record.outcome != "ok" and not record.censored:
            yield _svg.label("×", x(parts[-1][2]) + 1, y + thick, "t cross")
