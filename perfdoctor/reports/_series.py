"""Turns samples and requests into lines that can be drawn: rates, gaps, fewer points. Pure."""

from __future__ import annotations

import heapq
import itertools
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Sequence

from perfdoctor.model import Interval, RequestRecord, Sample
from perfdoctor.reports._svg import Point

GAP_FACTOR = 5.0  # a pause of so many usual intervals is drawn as a hole, not bridged
GAP_MIN_S = 2.0


def collect(samples: Iterable[Sample], metrics: Collection[str]) -> dict[tuple[str, str], list[Point]]:
    """(metric, its labels as text) to readings in order of time. A failed reading is a hole."""
    found: dict[tuple[str, str], list[Point]] = {}
    for sample in samples:
        for name, value in sample.values.items():
            metric = f"{sample.probe}.{name}"
            if metric in metrics:
                known = value if value is not None and math.isfinite(value) else None
                key = (metric, " ".join(sample.labels.values()))
                found.setdefault(key, []).append((sample.at_s, known))
    for points in found.values():
        points.sort(key=lambda point: point[0])
    return found


def rates(points: Sequence[Point]) -> list[Point]:
    """A cumulative counter as growth a second, stamped at the end of each interval.

    A counter that fell was reset, and a missing reading leaves both its neighbours without a rate: holes.
    """
    made: list[Point] = []
    for (t0, v0), (t1, v1) in itertools.pairwise(points):
        if t1 <= t0:
            continue
        known = v0 is not None and v1 is not None and v1 >= v0
        made.append((t1, (v1 - v0) / (t1 - t0) if known and v0 is not None and v1 is not None else None))
    return made


def with_holes(points: Sequence[Point]) -> list[Point]:
    """A hole where readings paused far longer than usual, so that no line claims to know what was."""
    if len(points) < 3:
        return list(points)
    usual = statistics.median(b[0] - a[0] for a, b in itertools.pairwise(points))
    longest = max(GAP_MIN_S, GAP_FACTOR * usual)
    made = [points[0]]
    for before, point in itertools.pairwise(points):
        if point[0] - before[0] > longest:
            made.append((before[0], None))
        made.append(point)
    return made


def thin(points: Sequence[Point], buckets: int) -> list[Point]:
    """At most about two points a bucket of time: its lowest and highest, so that no peak is lost."""
    if len(points) <= 2 * buckets:
        return list(points)
    start, width = points[0][0], (points[-1][0] - points[0][0]) / buckets or 1.0
    groups: dict[int, list[Point]] = {}
    for point in points:
        groups.setdefault(min(buckets - 1, int((point[0] - start) / width)), []).append(point)
    return [point for group in groups.values() for point in _extremes(group)]


def _extremes(group: Sequence[Point]) -> list[Point]:
    known = [(y, x) for x, y in group if y is not None]
    if not known:
        return [(group[0][0], None)]
    low, high = min(known), max(known)
    ends = sorted({(low[1], low[0]), (high[1], high[0])})
    made: list[Point] = [*ends]
    return [*made, (group[-1][0], None)] if group[-1][1] is None else made


def course(bins: Sequence[Interval]) -> list[tuple[str, str, list[tuple[str, list[Point]]]]]:
    """(title, unit, lines) of a load's bins, each point in the middle of its bin."""

    def line(of: Callable[[Interval], float | None]) -> list[Point]:
        return [((part.start_s + part.end_s) / 2, of(part)) for part in bins]

    def per_s(amount: float, part: Interval) -> float:
        return amount / (part.end_s - part.start_s)

    return [
        ("Answers", "/s", [
            ("ok", line(lambda part: per_s(part.ok, part))),
            ("failed", line(lambda part: per_s(part.failed, part))),
        ]),
        ("Output tokens", "/s", [("arrived", line(lambda part: per_s(part.output_tokens, part)))]),
        ("Time to first token", "s", [("median", line(lambda part: part.ttft_p50_s))]),
    ]  # fmt: skip


def begin(record: RequestRecord) -> float:
    return record.due_s if record.sent_s is None else record.sent_s


def finish(record: RequestRecord, run_end_s: float) -> float:
    """When it was over, as far as known; an open request lasts until the run's end."""
    known = [t for t in (record.end_s, record.last_token_s) if t is not None]
    return max([begin(record), *(known or [run_end_s])])


def lanes(records: Sequence[RequestRecord], run_end_s: float) -> list[tuple[int, RequestRecord]]:
    """Each request with the lowest lane that is free when it begins: as many lanes as ran at once."""
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    made, used = [], 0
    for record in sorted(records, key=begin):
        while busy and busy[0][0] <= begin(record):
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, used = used, used + 1
        heapq.heappush(busy, (finish(record, run_end_s), lane))
        made.append((lane, record))
    return made


def in_flight(records: Sequence[RequestRecord], run_end_s: float) -> list[Point]:
    """How many requests were open, as a staircase."""
    changes = sorted([(begin(r), 1) for r in records] + [(finish(r, run_end_s), -1) for r in records])
    made: list[Point] = []
    level = 0
    for at, change in changes:
        made.append((at, float(level)))
        level += change
        made.append((at, float(level)))
    return made


def evenly(records: Sequence[RequestRecord], most: int) -> tuple[RequestRecord, ...]:
    """At most `most`, picked at even distances; every request that failed is kept, within the same number."""
    if len(records) <= most:
        return tuple(records)
    failed = [r for r in records if r.outcome != "ok"][: most // 2]
    kept = {r.id for r in failed}
    fine = [r for r in records if r.id not in kept]
    room = most - len(failed)
    return tuple(failed) + tuple(fine[k * len(fine) // room] for k in range(room))
