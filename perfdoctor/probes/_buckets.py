"""Histogram buckets of a /metrics page: how many observations were at most so long, under our names.

They give percentiles of a stretch of time from two scrapes, with the width of a bucket as error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from perfdoctor.probes._engine_table import unit_s

SUM, BUCKET = "_sum", "_bucket"
OURS = "_sum_s"  # data/engines.toml names a histogram by its sum, which is in seconds

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
    from prometheus_client.parser import text_string_to_metric_families

    by_name: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            edge = sample.labels.get("le")
            if edge is not None and math.isfinite(sample.value):
                edges = by_name.setdefault(sample.name, {})
                edges[edge] = edges.get(edge, 0.0) + sample.value
    found: dict[str, Buckets] = {}
    for ours, candidates in names.items():
        exact = next((name for name in candidates if name in by_name), None)
        if exact:
            found[ours] = {_edge(edge, unit_s(exact)): count for edge, count in by_name[exact].items()}
    return found


def _edge(text: str, unit_s: float) -> str:
    """As the server writes it where it writes seconds."""
    return text if unit_s == 1.0 else f"{float(text) * unit_s:g}".replace("inf", "+Inf")
