"""A calibration on a terminal."""

from __future__ import annotations

from rich.console import Console

from perfdoctor import units
from perfdoctor.model import Calibration
from perfdoctor.reports._columns import Page

HEAD = ("streams", "events/s", "lag p50", "lag p99", "worst", "server late", "CPU", "us/event")


def print_calibration(console: Console, found: Calibration) -> None:
    """One line a level, then the ceiling."""
    page = Page(console)
    rows = [
        (
            units.number(level.streams),
            units.number(level.events_per_s),
            units.seconds(level.lag_p50_s),
            units.seconds(level.lag_p99_s),
            units.seconds(level.lag_max_s),
            units.seconds(level.server_late_p99_s),
            units.share(level.cpu_share),
            units.number(None if level.cpu_per_event_s is None else level.cpu_per_event_s * 1e6),
        )
        for level in found.levels
    ]
    page.table([HEAD, *rows], range(len(HEAD)), 0)
    page.gap()
    page.paragraph("Ceiling", found.summary)
    page.paragraph("", "Lag is from the server's write of an event to its stamp here.", "muted")
    page.paragraph("Machine", f"{found.cores} cores for both ends; transport {found.transport}")
    page.paragraph("Next", "each load test says in its Trust line whether it stayed below")
