"""What must hold of any summary, whatever the requests were."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from summary_cases import summary

from perfdoctor.model import LoadSummary, RequestRecord, Spread

# Binary fractions add up exactly, so that an order of addition cannot be told.
TIMES = st.integers(0, 4096).map(lambda n: n / 512)


@st.composite
def records(draw: st.DrawFn) -> RequestRecord:
    """Any way for a request to go: unsent, failed, cut off, in one piece, with or without counts."""
    due, wait, first = draw(TIMES), draw(TIMES) / 8, draw(TIMES)
    fate = draw(st.sampled_from(["ok", "ok", "ok", "whole", "plain", "http_429", "cancelled", "not_sent"]))
    fields: dict[str, object] = {
        "id": draw(st.integers(0, 99)), "phase": draw(st.sampled_from(["steady", "steady", "warmup"])),
        "due_s": due,
    }  # fmt: skip
    if fate == "not_sent":
        return RequestRecord(**fields, outcome="not_sent", censored=True)
    sent = due + wait
    fields |= {"sent_s": sent, "end_s": sent + first, "outcome": "ok" if fate in ("whole", "plain") else fate}
    fields["censored"] = fate == "cancelled"
    if fate in ("ok", "cancelled"):
        gaps = draw(st.lists(TIMES.map(lambda t: t / 16), max_size=6))
        stamps = [sent + first]
        for gap in gaps:
            stamps.append(stamps[-1] + gap)
        fields |= {
            "first_token_s": stamps[0], "first_answer_s": stamps[0], "last_token_s": stamps[-1],
            "end_s": stamps[-1], "token_at_s": tuple(stamps), "token_source": "usage",
            "output_tokens": len(stamps) * draw(st.sampled_from([1, 1, 4])), "prompt_tokens": 8,
        }  # fmt: skip
    if fate == "whole":
        fields |= {"output_tokens": draw(st.integers(0, 9)), "token_source": "usage"}
    return RequestRecord(**fields)


MANY = st.lists(records(), max_size=24)
SHAPES = st.sampled_from([{"users": 1}, {"users": 4}, {"arrival": "poisson", "rate": 4.0}])
FEW = settings(max_examples=60, deadline=None)


def spreads(found: LoadSummary) -> dict[str, Spread]:
    named = {name: getattr(found, name) for name in found.__struct_fields__}
    return {n: s for n, s in (named | found.stages).items() if isinstance(s, Spread)}


@FEW
@given(MANY, SHAPES)
def test_every_request_is_one_thing(found, shape):
    """Ok, failed or censored; success is a share; the bins add up to the counts."""
    counts = summary(found, **shape).requests

    assert counts.total == counts.ok + sum(counts.failed.values()) + counts.censored
    assert 0 <= counts.ok <= counts.total
    assert counts.not_sent <= counts.censored


@FEW
@given(MANY, SHAPES)
def test_the_course_adds_up(found, shape):
    """Where there is one."""
    result = summary(found, **shape)
    counts, course = result.requests, result.course

    if course:
        assert counts.total - counts.not_sent == sum(part.sent for part in course)
        assert counts.ok == sum(part.ok for part in course)
        assert sum(counts.failed.values()) == sum(part.failed for part in course)
        assert all(0 <= part.in_flight <= len(found) for part in course)


@FEW
@given(MANY, SHAPES)
def test_rates_are_in_order(found, shape):
    """A peak is no less than the mean, and no mean is more than the most."""
    rates = summary(found, **shape).rates

    if rates.peak_output_tokens_per_s is not None:
        assert rates.peak_output_tokens_per_s >= rates.output_tokens_per_s - 1e-6
    if rates.in_flight_mean is not None:
        assert 0 <= rates.in_flight_mean <= rates.in_flight_max + 1e-9
        assert rates.requests_per_s * (rates.end_s - rates.start_s) <= len(found) + 1e-9


@FEW
@given(MANY, SHAPES)
def test_no_latency_is_longer_than_the_run(found, shape):
    """Nor negative; and the percentiles stand in order."""
    result = summary(found, **shape)
    length_s = max((r.end_s or r.due_s for r in found), default=0.0)

    for name, spread in spreads(result).items():
        known = [v for v in (spread.min, spread.p50, spread.p90, spread.p95, spread.max) if v is not None]
        assert known == sorted(known)
        assert all(0 <= value for value in known)
        assert name == "user_tokens_per_s" or all(value <= length_s for value in known)
        assert spread.mean is None or spread.min <= spread.mean + 1e-9


@FEW
@given(MANY, SHAPES, st.randoms(use_true_random=False))
def test_the_order_of_the_log_does_not_matter(found, shape, chance: random.Random):
    """Worker processes write as they finish."""
    mixed = list(found)
    chance.shuffle(mixed)

    assert summary(found, **shape) == summary(mixed, **shape)


@FEW
@given(MANY, SHAPES)
def test_every_number_is_finite(found, shape):
    """Neither JSON nor a reader has a use for NaN and infinity."""
    document = msgspec.to_builtins(summary(found, slo="ttft_p95<1s", **shape))

    assert all(math.isfinite(number) for number in numbers(document))


def numbers(document: object) -> Iterator[float]:
    if isinstance(document, (int, float)):
        yield document
    if isinstance(document, dict):
        document = list(document.values())
    if isinstance(document, (list, tuple)):
        for member in document:
            yield from numbers(member)


@FEW
@given(MANY, SHAPES)
def test_an_empty_set_is_null_and_never_zero(found, shape):
    """No number is made of nothing."""
    for spread in spreads(summary(found, **shape)).values():
        assert spread.n > 0 or Spread() == spread
