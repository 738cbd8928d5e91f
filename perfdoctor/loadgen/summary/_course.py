"""How a load went on: counts and latencies in equal bins of its time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from perfdoctor import latency, stats
from perfdoctor.loadgen.summary._columns import Delivered, Open, column
from perfdoctor.model import Interval, RequestRecord

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float64]

MOST_BINS = 120
LEAST_BIN_S = 0.5


def course(steady: Sequence[RequestRecord], tokens: Delivered, flying: Open) -> tuple[Interval, ...]:
    """From the first request sent to the end of the last one, so that the counts add up to all of them.

    `tokens` and `flying` may hold the warm-up's: the server had to deliver those too. Empty for a load of
    less than two bins.
    """
    import numpy as np

    start_s = min((r.sent_s for r in steady if r.sent_s is not None), default=0.0)
    end_s = max((r.end_s for r in steady if r.end_s is not None), default=0.0)
    if end_s - start_s < 2 * LEAST_BIN_S:
        return ()
    count = min(MOST_BINS, int((end_s - start_s) / LEAST_BIN_S))
    edges = np.linspace(start_s, end_s, count + 1)
    ended = [r for r in steady if not r.censored]
    sent = _histogram((r.sent_s for r in steady), edges)
    good = _histogram((r.end_s for r in ended if r.outcome == "ok"), edges)
    bad = _histogram((r.end_s for r in ended if r.outcome != "ok"), edges)
    arrived, _ = np.histogram(tokens.at_s, edges, weights=tokens.tokens)
    in_flight, ttfts = flying.means(edges.tolist()), _by_bin(steady, edges)
    return tuple(
        Interval(
            start_s=low,
            end_s=high,
            in_flight=in_flight[i],
            sent=sent[i],
            ok=good[i],
            failed=bad[i],
            output_tokens=round(float(arrived[i]), 3),
            ttft_p50_s=stats.percentile(ttfts[i], 0.5),
        )
        for i, (low, high) in enumerate(pairwise(edges.tolist()))
    )


def _histogram(at_s: Iterable[float | None], edges: Numbers) -> list[int]:
    import numpy as np

    return [int(n) for n in np.histogram(column(at_s), edges)[0]]


def _by_bin(steady: Sequence[RequestRecord], edges: Numbers) -> list[list[float]]:
    """Times to first token of all requests that came to one, where it came."""
    import numpy as np

    pairs = [(r.first_token_s, ttft) for r in steady if (ttft := latency.ttft(r)) is not None]
    places = np.searchsorted(edges, np.array([at for at, _ in pairs], dtype=np.float64), side="right") - 1
    found = [list[float]() for _ in range(len(edges) - 1)]
    for place, (_, ttft) in zip(places.tolist(), pairs, strict=True):
        found[min(place, len(found) - 1)].append(ttft)
    return found
