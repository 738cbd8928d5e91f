"""Latency histograms with their percentiles marked, as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfdoctor import latency, stats, units
from perfdoctor.model import RequestRecord
from perfdoctor.reports import _svg
from perfdoctor.reports._words import of_phase

WIDTH, HEIGHT = 340.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 12.0, 52.0, 34.0
BINS = (8, 36)  # fewest and most
MEASURES = (
    ("Time to first token", latency.ttft),
    ("Time per output token", latency.tpot),
    ("End to end", latency.e2e),
)


@dataclass(frozen=True, slots=True)
class Distribution:
    """One drawn latency. `alone_s`: median of the baseline phase, where requests ran one at a time."""

    name: str
    values: tuple[float, ...]
    alone_s: float | None
    svg: str


def distributions(records: Sequence[RequestRecord]) -> tuple[Distribution, ...]:
    """Of the steady phase's good requests; a latency that nobody had is left out."""
    records = latency.without_prompt_tail(records)
    steady = latency.ok_records(of_phase(records, "steady"))
    alone = latency.ok_records(of_phase(records, "baseline"))
    made = []
    for name, measure in MEASURES:
        values = tuple(latency.present(measure(r) for r in steady))
        if values:
            single = stats.percentile(latency.present(measure(r) for r in alone), 0.5)
            made.append(Distribution(name, values, single, draw(name, values, single)))
    return tuple(made)


def draw(name: str, values: Sequence[float], alone_s: float | None) -> str:
    """Bars of equal width from a round number below the least value to one above the greatest."""
    marks = [
        ("p50", stats.percentile(values, 0.5)),
        ("p95", stats.percentile(values, 0.95)),
        ("alone", alone_s),
    ]
    known = [(what, value) for what, value in marks if value is not None]
    low, high = _domain([*values, *(v for _, v in known)])
    x = _svg.Scale(low, high, LEFT, WIDTH - RIGHT)
    counts = _counts(values, low, high)
    top = _svg.round_up(max(counts))
    y = _svg.Scale(0, top, HEIGHT - BOTTOM, TOP)
    said = ", ".join(f"{what} {units.seconds(value)}" for what, value in known)
    rows = [
        (what, value, 12.0 + 13.0 * row) for row, (what, value) in enumerate(sorted(known, key=_row_order(x)))
    ]
    body = [*_axes(x, y, top), *_bars(counts, low, high, x, y)]
    body += [_mark(what, x(value), row_y) for what, value, row_y in rows]
    body += [_mark_label(f"{what} {units.seconds(value)}", x(value), row_y) for what, value, row_y in rows]
    n = units.number(len(values))
    return _svg.picture(WIDTH, HEIGHT, f"{name}: histogram of {n} requests, {said}", body)


def _domain(values: Sequence[float]) -> tuple[float, float]:
    """From zero, unless all values lie close together far from it."""
    low, high = min(values), max(values)
    if high <= 0:
        return 0.0, 1.0
    if low > 0.6 * high and high > low:
        margin = 0.15 * (high - low)
        return low - margin, high + margin
    return 0.0, high * 1.05


def _counts(values: Sequence[float], low: float, high: float) -> list[int]:
    bins = min(BINS[1], max(BINS[0], math.ceil(2 * math.sqrt(len(values)))))
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, int((value - low) / (high - low) * bins)))] += 1
    return counts


def _bars(counts: Sequence[int], low: float, high: float, x: _svg.Scale, y: _svg.Scale) -> list[str]:
    width = (high - low) / len(counts)
    made = []
    for number, count in enumerate(counts):
        if count:
            start, end = low + number * width, low + (number + 1) * width
            said = f"{units.number(count)} requests, {units.seconds(start)} to {units.seconds(end)}"
            box = {
                "x": x(start) + 0.5,
                "y": y(count),
                "width": x(end) - x(start) - 1,
                "height": y(0) - y(count),
            }
            made.append(_svg.element("rect", _svg.title(said), class_="bar0", **box))
    return made


def _axes(x: _svg.Scale, y: _svg.Scale, top: float) -> list[str]:
    made = [_svg.line(LEFT, y(0), WIDTH - RIGHT, y(0), "axis")]
    for tick in _svg.ticks(x.low, x.high, 6):
        made.append(_svg.line(x(tick), y(0), x(tick), y(0) + 4, "axis"))
        made.append(_svg.label(axis_time(tick), x(tick), y(0) + 16, anchor="middle"))
    for tick in _svg.ticks(0, top, 4):
        if tick == int(tick):
            made.append(_svg.line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "grid"))
            made.append(_svg.label(units.number(tick), LEFT - 6, y(tick) + 4, anchor="end"))
    made.append(_svg.label("requests", LEFT - 6, TOP - 10, "t dim", "end"))
    return made


def _mark(what: str, at: float, row_y: float) -> str:
    return _svg.line(at, row_y - 8, at, HEIGHT - BOTTOM, f"mark {what}")


def _labelled_left(at: float) -> bool:
    """On the side of the line that has more room."""
    return at > (LEFT + WIDTH) / 2


def _row_order(x: _svg.Scale) -> Callable[[tuple[str, float]], tuple[bool, float]]:
    """From the top down so that no line runs through the label of another on its side."""
    return lambda mark: (not _labelled_left(x(mark[1])), mark[1] * (-1 if _labelled_left(x(mark[1])) else 1))


def _mark_label(text: str, at: float, row_y: float) -> str:
    if _labelled_left(at):
        return _svg.label(text, at - 5, row_y, "t strong halo", "end")
    return _svg.label(text, at + 5, row_y, "t strong halo")


def axis_time(value_s: float) -> str:
    """`0` needs no unit."""
    return "0" if value_s == 0 else units.seconds(value_s)
