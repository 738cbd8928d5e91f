"""The same phase as the server's own counters saw it. Pure: samples of the engine probe in, a view out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from perfdoctor.loadgen.summary._window import Window
from perfdoctor.model import Sample, ServerView

COUNTERS = (
    "requests", "output_tokens", "ttft_sum_s", "ttft_count", "e2e_sum_s", "e2e_count", "queue_sum_s",
    "queue_count",
)  # fmt: skip
SLACK_S = 2.0  # the probe reads about once a second, so the last reading may stand just after the end


def server_view(samples: Iterable[Sample], window: Window | None) -> ServerView | None:
    """Differences of the readings around the load; None where the server exports nothing.

    Totals since the server's start are never taken: with one reading, or a counter that went back, `missing`
    says why there is nothing.
    """
    found = [s for s in samples if s.probe == "engine" and s.status == "ok"]
    if not found or window is None:
        return None
    before = [s for s in found if s.at_s <= window[0]] or found[:1]
    after = [s for s in found if window[1] <= s.at_s <= window[1] + SLACK_S] or found[-1:]
    if before[-1] is after[-1]:
        return ServerView(missing="its counters were read only once")
    between = [s.values for s in found if before[-1].at_s <= s.at_s <= after[-1].at_s]
    if any(_went_back(a, b) for a, b in pairwise(between)):
        return ServerView(missing="its counters were set back: it was restarted")
    gained = {name: _gain(between[0], between[-1], name) for name in COUNTERS}
    requests = gained.get("requests")
    return ServerView(
        requests=None if requests is None else round(requests),
        ttft_mean_s=_mean(gained, "ttft"),
        e2e_mean_s=_mean(gained, "e2e"),
        queue_mean_s=_mean(gained, "queue"),
        output_tokens=gained.get("output_tokens"),
        source="differences of two readings of its /metrics",
    )


def _went_back(first: Mapping[str, float | None], last: Mapping[str, float | None]) -> bool:
    return any((_gain(first, last, name) or 0.0) < 0 for name in COUNTERS)


def _gain(first: Mapping[str, float | None], last: Mapping[str, float | None], name: str) -> float | None:
    before, after = first.get(name), last.get(name)
    return None if before is None or after is None else after - before


def _mean(gained: Mapping[str, float | None], name: str) -> float | None:
    total, count = gained.get(f"{name}_sum_s"), gained.get(f"{name}_count")
    return total / count if total is not None and count else None
