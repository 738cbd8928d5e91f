"""Requests and probe readings of a run above one another on one time axis, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdoctor import units
from perfdoctor.model import Phase
from perfdoctor.reports import _gantt, _series, _svg
from perfdoctor.reports._bundle import Bundle
from perfdoctor.reports._histogram import axis_time
from perfdoctor.reports._svg import Point

WIDTH, LEFT, RIGHT = 1080.0, 190.0, 1064.0
PHASES_H, PANEL_H, SPACE, AXIS_H = 24.0, 52.0, 18.0, 28.0
BUCKETS = 320  # of the visible width; two points each
FEW = 12  # readings that are marked one by one
MOST_LINES = 4  # of one metric, when it has several labels: the largest


@dataclass(frozen=True, slots=True)
class Line:
    metric: str
    name: str
    rate: bool = False  # draw the counter's growth a second


@dataclass(frozen=True, slots=True)
class Panel:
    """One small chart; its lines share a unit (see units.quantity)."""

    title: str
    unit: str
    lines: tuple[Line, ...]


PANELS = (
    Panel("GPU busy", "share", (Line("gpu.sm_active", "SM"), Line("gpu.dram_active", "DRAM"))),
    Panel("Disk reads", "bytes/s", (
        Line("disk.read_bytes", "device", rate=True), Line("io.process_read_bytes", "server", rate=True))),
    Panel("Threads blocked on IO", "", (Line("io.blocked_threads", "threads"),)),
    Panel("CPU of the server", "cores", (
        Line("cpu.oncpu_s", "running", rate=True), Line("cpu.runq_wait_s", "waiting for a CPU", rate=True))),
    Panel("GIL held", "share", (Line("gil.held_share", "of the window"),)),
    Panel("Memory", "bytes", (Line("memory.rss_bytes", "server RSS"), Line("gpu.mem_used_bytes", "GPU"))),
    Panel("Engine queue", "", (Line("engine.running", "running"), Line("engine.waiting", "waiting"))),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Timeline:
    """The drawing, the request kinds it uses (id to words), and how many requests are drawn of all."""

    svg: str
    kinds: Mapping[str, str]
    drawn: int
    total: int
    absent: tuple[str, ...]  # titles of panels without a reading


def draw(bundle: Bundle) -> Timeline | None:
    """None when the run recorded nothing with a time."""
    bounds = _bounds(bundle)
    if bounds is None:
        return None
    x = _svg.Scale(*bounds, LEFT, RIGHT)
    body: list[str] = []
    kinds: tuple[str, ...] = ()
    y = PHASES_H + 8
    if bundle.requests:
        used, kinds, gantt = _gantt.draw(bundle.requests, _gantt.starts(bundle.samples), x, y)
        body += [_svg.label("Requests", 4, y + 12, "t strong"), *gantt]
        y += max(used, 16.0) + SPACE
    absent = []
    for panel, lines in _panels(bundle, x.high):
        if lines:
            body += _panel(panel, lines, x, y)
            y += PANEL_H + SPACE
        else:
            absent.append(panel.title)
    behind = [*_phases(bundle.facts.phases, x, y), *_axis(x, y)]
    svg = _svg.picture(WIDTH, y + AXIS_H, _description(bundle, bounds), behind + body, "timeline")
    total = len(bundle.requests)
    return Timeline(svg, {k: _gantt.KINDS[k] for k in kinds}, min(total, _gantt.MOST), total, tuple(absent))


def _bounds(bundle: Bundle) -> tuple[float, float] | None:
    starts = [p.start_s for p in bundle.facts.phases] + [s.at_s for s in bundle.samples]
    ends = [p.end_s for p in bundle.facts.phases] + [s.at_s for s in bundle.samples]
    for record in bundle.requests:
        starts.append(_series.begin(record))
        ends.append(_series.finish(record, _series.begin(record)))
    if not starts or max(ends) <= min(starts):
        return None
    return min(starts), max(ends)


def _description(bundle: Bundle, bounds: tuple[float, float]) -> str:
    what = f"{units.number(len(bundle.requests))} requests and {units.number(len(bundle.samples))} readings"
    return f"Timeline of {units.seconds(bounds[1] - bounds[0])}: {what} on one time axis"


def _panels(bundle: Bundle, end_s: float) -> list[tuple[Panel, list[tuple[str, list[Point]]]]]:
    """Every panel with its named lines, thinned out; none for a panel without a reading."""
    wanted = {line.metric for panel in PANELS for line in panel.lines}
    found = _series.collect(bundle.samples, wanted)
    made = [(panel, [named for line in panel.lines for named in _named(line, found)]) for panel in PANELS]
    if bundle.requests:
        flight = Panel("Requests in flight", "", ())
        made.insert(0, (flight, [("open", _series.thin(_series.in_flight(bundle.requests, end_s), BUCKETS))]))
        made[1:1] = _course(bundle)
    return made


def _course(bundle: Bundle) -> list[tuple[Panel, list[tuple[str, list[Point]]]]]:
    """What the load came to, bin by bin; without a panel for what was not counted."""
    course = bundle.summary.course if bundle.summary else ()
    found = [
        (Panel(title, unit, ()), [(name, points) for name, points in lines if any(y for _, y in points)])
        for title, unit, lines in _series.course(course)
    ]
    return [(panel, lines) for panel, lines in found if lines]


def _named(line: Line, found: Mapping[tuple[str, str], list[Point]]) -> list[tuple[str, list[Point]]]:
    drawn = []
    for (metric, of), readings in found.items():
        if metric == line.metric:
            points = _series.rates(readings) if line.rate else readings
            known = [v for _, v in points if v is not None]
            if known:
                drawn.append((sum(known) / len(known), of, _series.with_holes(points)))
    drawn.sort(key=lambda item: -item[0])
    several = len(drawn) > 1
    return [
        (f"{line.name} {of}" if several else line.name, _series.thin(points, BUCKETS))
        for _, of, points in drawn[:MOST_LINES]
    ]


def _panel(panel: Panel, lines: Sequence[tuple[str, list[Point]]], x: _svg.Scale, top: float) -> list[str]:
    highest = max((v for _, points in lines for _, v in points if v is not None), default=0.0)
    limit = 1.0 if panel.unit == "share" else _svg.round_up(highest)
    y = _svg.Scale(0, max(limit, highest), top + PANEL_H, top)
    made = [
        _svg.label(panel.title, 4, top + 12, "t strong"),
        _svg.label(units.quantity(y.high, panel.unit) if highest else "", LEFT - 6, top + 9, "t dim", "end"),
        _svg.label("0", LEFT - 6, top + PANEL_H, "t dim", "end"),
        _svg.line(LEFT, y(0), RIGHT, y(0), "axis"),
        _svg.line(LEFT, top, RIGHT, top, "grid"),
    ]
    for number, (name, points) in enumerate(lines):
        style = f"s{number % MOST_LINES}"
        row = top + 27 + 12 * number
        placed = [(x(t), None if v is None else y(v)) for t, v in points]
        peak = max((v for _, v in points if v is not None), default=None)
        said = f"{panel.title}, {name}: at most {units.quantity(peak, panel.unit)}"
        made.append(_svg.element("path", _svg.title(said), d=_svg.path(placed), class_=f"line {style}"))
        made += _dots(placed, style)
        if len(lines) > 1 or name != "open":
            made += [_svg.line(6, row - 4, 24, row - 4, f"line {style}"), _svg.label(name, 30, row, "t dim")]
    return made


def _dots(placed: Sequence[Point], style: str) -> list[str]:
    """Marks each reading where they are so few that a line alone would suggest more."""
    if len(placed) > FEW:
        return []
    return [
        _svg.element("circle", cx=a, cy=b, r=2.5, class_=f"dot {style}") for a, b in placed if b is not None
    ]


def _phases(phases: Sequence[Phase], x: _svg.Scale, bottom: float) -> list[str]:
    made = []
    for number, phase in enumerate(phases):
        left, right = x(phase.start_s), x(phase.end_s)
        users = "" if phase.concurrency is None else f", {units.number(phase.concurrency)} at once"
        text = f"{phase.name}{users}"
        shade = _svg.element(
            "rect", _svg.title(f"{text}: {units.seconds(phase.end_s - phase.start_s)}"),
            x=left, y=0, width=max(0.5, right - left), height=bottom, class_=f"phase{number % 2}",
        )  # fmt: skip
        fitting = (t for t in (text, phase.name) if 6.2 * len(t) < right - left - 8)
        if shown := next(fitting, ""):
            shade += _svg.label(shown, left + 5, 15, "t dim")
        made.append(shade)
    return made


def _axis(x: _svg.Scale, bottom: float) -> list[str]:
    made = []
    for tick in _svg.ticks(x.low, x.high, 10):
        made.append(_svg.line(x(tick), PHASES_H, x(tick), bottom, "grid"))
        made.append(_svg.label(axis_time(tick), x(tick), bottom + 16, "t", "middle"))
    return [*made, _svg.label("time since the run began", 4, bottom + 16, "t dim")]
