"""Figures shared by the benchmarks: ratios of interleaved pairs and how sure they are."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

RESAMPLES = 5_000


def median_interval(values: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """Median and its 95 % percentile-bootstrap interval: (low, median, high)."""
    draw = random.Random(seed)
    medians = sorted(
        statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )  # fmt: skip
    return medians[round(0.025 * RESAMPLES)], statistics.median(values), medians[round(0.975 * RESAMPLES)]


def verdict(met: bool) -> str:
    """The word behind a target. Nothing is enforced: a busy machine can miss any of them."""
    return "met" if met else "MISSED"
