"""Histogram buckets of a page of metrics: how many observations were at most so long, under our names.

They give percentiles of a stretch of time from two scrapes, with the width of a bucket as error. A page has
hundreds of them, so that they are read by a pattern and not by the parser, which takes ten times as long.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from perfdoctor.probes._engine_table import unit_s

SUM, BUCKET = "_sum", "_bucket"
OURS = "_sum_s"  # data/engines.toml names a histogram by its sum, which is in seconds
_SAMPLE = re.compile(r'^(\w[\w:]*)\{(?:.*,)?\s*le="([^"]+)".*\}\s+(\S+)', re.MULTILINE)

Buckets = Mapping[str, float]  # upper edge in seconds -> count, cumulative


def bucket_names(aliases: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Our name of each histogram, such as `ttft`, and the exact names its buckets may have."""
    found = {}
    for ours, names in aliases.items():
        buckets = tuple(name.removesuffix(SUM) + BUCKET for name in names if name.endswith(SUM))
        if ours.endswith(OURS) and buckets:
            found[ours.removesuffix(OURS)] = buckets
    return found


def read_buckets(text: str, names: Mapping[str, Sequence[str]]) -> dict[str, Buckets]:
    """By our name; label sets are added up, and histograms the page does not have left out."""
    by_name: dict[str, dict[str, float]] = {}
    for name, edge, count in _SAMPLE.findall(text):
        value = _number(count)
        if value is not None:
            edges = by_name.setdefault(name, {})
            edges[edge] = edges.get(edge, 0.0) + value
    found: dict[str, Buckets] = {}
    for ours, candidates in names.items():
        exact = next((name for name in candidates if name in by_name), None)
        if exact:
            found[ours] = {_edge(edge, unit_s(exact)): count for edge, count in by_name[exact].items()}
    return found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _edge(text: str, unit_s: float) -> str:
    """As the server writes it where it writes seconds."""
    return text if unit_s == 1.0 else f"{float(text) * unit_s:g}".replace("inf", "+Inf")
