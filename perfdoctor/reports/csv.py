"""One row per request, for a spreadsheet: instants, durations, and what became of it."""

from __future__ import annotations

import csv
import io

from perfdoctor.literal import one_line
from perfdoctor.reports._bundle import Bundle, Report
from perfdoctor.reports._request_rows import COLUMNS, Cell, rows

FORMULA = ("=", "+", "-", "@")  # a spreadsheet computes a text that begins so


def render(bundle: Bundle) -> str:
    """The header alone for a run without requests."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows(bundle.requests))
    return text.getvalue()


def _cell(value: Cell) -> Cell:
    if not isinstance(value, str):
        return value
    line = one_line(value)
    return f"'{line}" if line.startswith(FORMULA) else line


REPORT = Report("csv", render)
