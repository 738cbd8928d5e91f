"""A calibration on a terminal."""

from __future__ import annotations

from rich.console import Console

from perfdoctor import units
from perfdoctor.model import Calibration, CalibrationLevel
from perfdoctor.reports._columns import Page

HEAD = ("streams", "offered/s", "stamped/s", "lag p50", "lag p99", "worst", "server late")
MORE = ("streams", "TTFT error", "TPOT error", "CPU", "us/event", "server CPU", "trust")


def print_calibration(console: Console, found: Calibration) -> None:
    """What each level was and how late it was seen, what it cost, then the ceiling."""
    page = Page(console)
    page.table([HEAD, *map(_lags, found.levels)], range(len(HEAD)), 0)
    page.gap()
    page.table([MORE, *map(_costs, found.levels)], range(len(MORE) - 1), 0)
    page.gap()
    page.paragraph("Ceiling", found.summary)
    if any(level.tokens_per_s is None for level in found.levels):
        last = next(level for level in found.levels if level.tokens_per_s is None)
        page.paragraph("", f"As fast as they are taken: {units.number(last.events_per_s)}/s, {last.reason}.")
    page.paragraph(
        "",
        "Lag is from the server's write of an event to its stamp here; errors are at p99, against the "
        "server's own instants.",
        "muted",
    )
    page.paragraph("Machine", f"{found.cores} cores for both ends; transport {found.transport}")
    page.paragraph("Next", "each load test says in its Trust line whether it stayed below")


def _name(level: CalibrationLevel) -> str:
    return units.number(level.streams) + ("" if level.tokens_per_s else " max")


def _lags(level: CalibrationLevel) -> tuple[str, ...]:
    """Unpaced events lie in buffers, so their lag says nothing."""
    lags = (level.lag_p50_s, level.lag_p99_s, level.lag_max_s, level.server_late_p99_s)
    return (
        _name(level),
        units.number(level.offered_per_s),
        units.number(level.events_per_s),
        *(units.seconds(lag if level.tokens_per_s else None) for lag in lags),
    )


def _costs(level: CalibrationLevel) -> tuple[str, ...]:
    errors = (level.ttft_error_p99_s, level.tpot_error_p99_s)
    return (
        _name(level),
        *(units.seconds(error if level.tokens_per_s else None) for error in errors),
        units.share(level.cpu_share),
        units.number(None if level.cpu_per_event_s is None else level.cpu_per_event_s * 1e6),
        units.share(level.server_cpu_share),
        level.trust,
    )
