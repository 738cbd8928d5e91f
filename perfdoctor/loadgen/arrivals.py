"""Whether the load that left the client is the one that was asked for. Pure.

The sent instants are held against the due ones of the same requests, not against the theory of the process:
the schedule is one draw of it (see schedule.py and its tests), and its own chance is no fault of the sender.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from perfdoctor import units
from perfdoctor.model import Arrivals

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Times = NDArray[numpy.float64]

MIN_N = 20  # requests below which a gap statistic says nothing
RATE_LIMIT = 0.05  # share of the asked rate that may be missing; a guess
UNSENT_LIMIT = 0.01  # share of the requests; a guess
CV_LIMIT = (
    0.25  # between the CV of the sent gaps and of the due ones; a guess: Poisson and constant are 1 apart
)
DISPERSION_LIMIT = 0.5  # the same of the dispersion, as a share of the larger of 1 and the due one; a guess
KS_LIMIT = 0.05  # share of all requests that the sent ones may lag behind the due ones; a guess
WINDOW_ARRIVALS = 10  # mean count of the windows whose dispersion is taken
MIN_WINDOWS = 10


def check(process: str, due_s: Sequence[float], sent_s: Sequence[float | None]) -> Arrivals:
    """Of the requests that a schedule asked for (no later turns of conversations), in any order.

    `sent_s` holds None (or NaN) for one that was never sent.
    """
    import numpy as np

    due, sent = np.asarray(due_s, dtype=np.float64), np.asarray(sent_s, dtype=np.float64)
    late = (sent - due)[~np.isnan(sent)]
    due, sent = np.sort(due), np.sort(sent[~np.isnan(sent)])
    if len(due) < MIN_N:
        return Arrivals(
            process=process, status="unknown", n=len(due), reason=f"fewer than {MIN_N} scheduled requests"
        )
    found = Arrivals(
        process=process,
        status="as_asked",
        n=len(due),
        asked_per_s=_rate(due),
        sent_per_s=_rate(sent),
        gap_cv=_cv(sent),
        dispersion=_dispersion(sent),
        ks_distance=_lag(due, sent),
        late_p50_s=_rank(late, 0.50),
        late_p99_s=_rank(late, 0.99),
        late_max_s=float(late.max()) if len(late) else None,
    )
    reasons = _deviations(found, 1 - len(sent) / len(due), _cv(due), _dispersion(due))
    if not reasons:
        return found
    return msgspec.structs.replace(found, status="deviates", reason="; ".join(reasons))


def _deviations(
    found: Arrivals, unsent: float, due_cv: float | None, due_dispersion: float | None
) -> list[str]:
    reasons = []
    asked, sent = found.asked_per_s, found.sent_per_s
    if unsent >= UNSENT_LIMIT:
        reasons.append(f"{units.share(unsent)} of the requests were never sent")
    if asked and sent is not None and sent < (1 - RATE_LIMIT) * asked:
        reasons.append(f"{units.number(sent)} requests/s left, {units.number(asked)} were asked for")
    if found.ks_distance is not None and found.ks_distance >= max(KS_LIMIT, 2 / found.n):
        reasons.append(f"at one time {units.share(found.ks_distance)} of all requests were overdue")
    if found.gap_cv is not None and due_cv is not None and abs(found.gap_cv - due_cv) >= CV_LIMIT:
        reasons.append(f"the gaps have a CV of {found.gap_cv:.2f}, scheduled were {due_cv:.2f}")
    if found.dispersion is not None and due_dispersion is not None:
        limit = DISPERSION_LIMIT * max(1.0, due_dispersion)
        if abs(found.dispersion - due_dispersion) >= limit:
            reasons.append(
                f"the counts have a dispersion of {found.dispersion:.2f}, scheduled were {due_dispersion:.2f}"
            )
    return reasons


def _rate(at_s: Times) -> float | None:
    """Arrivals a second between the first and the last."""
    width_s = float(at_s[-1] - at_s[0]) if len(at_s) > 1 else 0.0
    return (len(at_s) - 1) / width_s if width_s else None


def _cv(at_s: Times) -> float | None:
    import numpy as np

    gaps = np.diff(at_s)
    return float(gaps.std() / gaps.mean()) if len(gaps) and gaps.mean() else None


def _dispersion(at_s: Times) -> float | None:
    """Variance over mean of the counts in equal windows; None with too few windows."""
    import numpy as np

    windows = len(at_s) // WINDOW_ARRIVALS
    if windows < MIN_WINDOWS or at_s[-1] == at_s[0]:
        return None
    counts, _ = np.histogram(at_s, windows)
    return float(counts.var() / counts.mean())


def _lag(due: Times, sent: Times) -> float:
    """Kolmogorov-Smirnov: the most by which the shares sent and due by one instant differ."""
    import numpy as np

    at_s = np.concatenate([due, sent])
    shares = (np.searchsorted(times, at_s, side="right") / len(due) for times in (due, sent))
    return float(np.max(np.abs(next(shares) - next(shares))))


def _rank(values: Times, p: float) -> float | None:
    """Nearest rank, as everywhere."""
    import numpy as np

    return float(np.quantile(values, p, method="inverted_cdf")) if len(values) else None
