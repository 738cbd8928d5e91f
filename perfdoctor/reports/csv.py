"""One row per request, for a spreadsheet: instants, durations, and what became of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from perfdoctor.literal import one_line
from perfdoctor.reports._bundle import Bundle, Report
from perfdoctor.reports._request_rows import COLUMNS, Cell, batches

FORMULA = ("=", "+", "-", "@")  # a spreadsheet computes a text that begins so


def render(bundle: Bundle) -> str:
    """The header alone for a run without requests."""
    return "".join(pieces(bundle))


def pieces(bundle: Bundle) -> Iterator[str]:
    yield _written([COLUMNS])
    for batch in batches(bundle.requests):
        yield _written([_text(c) if type(c) is str else c for c in row] for row in batch)


def _written(rows: Iterable[Iterable[Cell]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _text(cell: str) -> str:
    line = one_line(cell)
    return f"'{line}" if line.startswith(FORMULA) else line


REPORT = Report("csv", render, pieces)
