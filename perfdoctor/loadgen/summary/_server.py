"""The same phase as the server's own counters saw it. Pure: samples of the engine probe in, a view out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from perfdoctor import buckets, units
from perfdoctor.loadgen.summary._columns import delivered
from perfdoctor.loadgen.summary._window import Window
from perfdoctor.model import RequestRecord, Sample, ServerView

COUNTERS = (
    "requests", "output_tokens", "ttft_sum_s", "ttft_count", "e2e_sum_s", "e2e_count", "queue_sum_s",
    "queue_count",
)  # fmt: skip
APART, APART_N = 0.10, 2  # share and number of requests by which two counts of one thing may differ; guesses
APART_TOKENS = 50  # as they are counted before they are sent, and the scrape falls in between
SLACK_S = 2.0  # the probe reads about once a second, so the last reading may stand just after the end


def server_view(
    samples: Sequence[Sample], window: Window | None, records: Sequence[RequestRecord]
) -> ServerView | None:
    """Differences of the readings around the load; None where the server exports nothing.

    Totals since the server's start are never taken: with one reading, or a counter that went back, `missing`
    says why there is nothing. `records` are those of all phases: the readings stand outside of the
    steady one.
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
    span = before[-1].at_s, after[-1].at_s
    return msgspec.structs.replace(_view(gained, span, records), percentiles=_percentiles(samples, span))


def _percentiles(samples: Sequence[Sample], span: Window) -> dict[str, tuple[float, float | None]]:
    """Of the observations between two readings of each histogram; nothing of one that was not read twice."""
    found: dict[str, tuple[float, float | None]] = {}
    for name in buckets.HISTOGRAMS:
        read = [s for s in samples if s.probe == "engine.bucket" and s.labels.get("histogram") == name]
        inside = [s.values for s in read if span[0] <= s.at_s <= span[1]]
        added = buckets.gained(inside[0], inside[-1]) if inside else {}
        if any(added.values()) and min(added.values()) >= 0:
            for label, p in buckets.PERCENTILES.items():
                lies = buckets.percentile(added, p)
                found[f"{name}_{label}_s"] = (lies.low_s, lies.high_s if math.isfinite(lies.high_s) else None)
    return found


def _view(gained: Mapping[str, float | None], span: Window, records: Sequence[RequestRecord]) -> ServerView:
    requests, tokens = gained.get("requests"), gained.get("output_tokens")
    ended = sum(r.end_s is not None and span[0] < r.end_s <= span[1] for r in records if not r.censored)
    arrived = delivered(records)
    here = arrived.within(*span) if arrived.counted else None
    means = {name: _mean(gained, name) for name in ("ttft", "e2e", "queue")}
    absurd = [name for name, mean_s in means.items() if mean_s is not None and mean_s > span[1]]
    return ServerView(
        requests=None if requests is None else round(requests),
        ttft_mean_s=None if "ttft" in absurd else means["ttft"],
        e2e_mean_s=None if "e2e" in absurd else means["e2e"],
        queue_mean_s=None if "queue" in absurd else means["queue"],
        output_tokens=tokens,
        requests_here=ended,
        output_tokens_here=here,
        doubts=(
            *(f"its mean {name} was longer than the run and is left out" for name in absurd),
            *_doubts(requests, ended, tokens, here),
        ),
        source="differences of two readings of its /metrics",
    )


def _doubts(requests: float | None, ended: int, tokens: float | None, here: float | None) -> Iterator[str]:
    if requests is not None and requests - ended > max(APART_N, APART * ended):
        yield f"it finished {units.number(round(requests))} requests, {units.number(ended)} of them from here"
    if tokens is not None and here is not None and abs(tokens - here) > max(APART_TOKENS, APART * here):
        yield f"it counted {units.number(tokens)} tokens, here arrived {units.number(here)}"


def _went_back(first: Mapping[str, float | None], last: Mapping[str, float | None]) -> bool:
    return any((_gain(first, last, name) or 0.0) < 0 for name in COUNTERS)


def _gain(first: Mapping[str, float | None], last: Mapping[str, float | None], name: str) -> float | None:
    before, after = first.get(name), last.get(name)
    return None if before is None or after is None else after - before


def _mean(gained: Mapping[str, float | None], name: str) -> float | None:
    total, count = gained.get(f"{name}_sum_s"), gained.get(f"{name}_count")
    return total / count if total is not None and count else None
