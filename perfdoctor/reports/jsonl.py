"""One JSON object per request and line: the raw log's instants with the durations computed from them."""

from __future__ import annotations

import msgspec

from perfdoctor.reports._bundle import Bundle, Report
from perfdoctor.reports._request_rows import rows

_ENCODE = msgspec.json.Encoder().encode


def render(bundle: Bundle) -> str:
    """Empty for a run without requests."""
    return "".join(_ENCODE(row).decode() + "\n" for row in rows(bundle.requests))


REPORT = Report("jsonl", render)
