"""One JSON object per request and line: the raw log's instants with the durations computed from them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from perfdoctor.reports._bundle import Bundle, Report
from perfdoctor.reports._request_rows import COLUMNS, batches

_ENCODE = msgspec.json.Encoder().encode_lines


def render(bundle: Bundle) -> str:
    """Empty for a run without requests."""
    return "".join(pieces(bundle))


def pieces(bundle: Bundle) -> Iterator[str]:
    for batch in batches(bundle.requests):
        yield _ENCODE([dict(zip(COLUMNS, row, strict=True)) for row in batch]).decode()


REPORT = Report("jsonl", render, pieces)
