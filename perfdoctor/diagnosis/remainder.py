"""What parts leave of a whole: a ledger's last row."""

from __future__ import annotations

import math
from collections.abc import Mapping

UNEXPLAINED = "unexplained"
ROUNDING = 1e-12  # of the whole: what adding floats loses


def left_of(total_s: float, rows: Mapping[str, float]) -> float:
    """What the rows leave of the whole; a difference below the sum's own rounding is nothing."""
    left = total_s - math.fsum(rows.values())
    return left if left > ROUNDING * total_s else 0.0
