"""Which phases of load a run has, and in which order."""

from __future__ import annotations

import asyncio

import pytest

from perfdoctor.loadgen.stage import Stage
from perfdoctor.model import Load, Phase, Scenario, Target
from perfdoctor.progress import Watch
from perfdoctor.stages import SHORT_ANSWERS, Conduct, Orders, _stages


def stages(load: Load, target: Target | None = None, phases: tuple[Phase, ...] = ()) -> list[Stage]:
    """As they would be driven; `phases` are those that were already."""

    async def collect() -> list[Stage]:
        run = Conduct(Orders(Scenario(target=target or Target(), load=load), "load-test"), Watch(quiet=True))
        run.phases += phases
        return [stage async for stage, _ in _stages(run, load)]

    return asyncio.run(collect())


def test_a_warm_up_is_the_beginning_of_the_load():
    """Two short answers alone, and then everything at the concurrency that was asked for."""
    short, steady = stages(Load(concurrency=8, requests=50, warmup_requests=4, warmup_s=3.0))

    assert ("warmup", 1, 0, SHORT_ANSWERS) == (
        short.phase,
        short.concurrency,
        short.requests,
        short.first_tokens,
    )
    assert ("steady", 8, 50) == (steady.phase, steady.concurrency, steady.requests)
    assert (4, 3.0) == (steady.lead_requests, steady.lead_s)


def test_a_baseline_needs_an_idle_server():
    """So the warm-up before it is a stage of its own, and nothing is open when it ends."""
    warmup, baseline, steady = stages(
        Load(concurrency=8, requests=50, warmup_requests=3, baseline_requests=5)
    )

    assert ("warmup", 1, 3) == (warmup.phase, warmup.concurrency, warmup.requests)
    assert ("baseline", 1, 5) == (baseline.phase, baseline.concurrency, baseline.requests)
    assert 0 == steady.lead_requests


def test_no_warm_up_when_none_is_asked_for():
    """Not even the short answers."""
    assert ["steady"] == [stage.phase for stage in stages(Load(requests=5, warmup_requests=0))]


@pytest.mark.parametrize("target", [Target(api="http"), Target(stream=False)], ids=["http", "not streamed"])
def test_short_answers_only_where_tokens_show(target):
    """Elsewhere there is no prompt's tail to be told from a token."""
    (steady,) = stages(Load(requests=5, warmup_requests=2), target)

    assert ("steady", 2) == (steady.phase, steady.lead_requests)


def test_an_open_loop_has_no_users():
    """It has a schedule; its warm-up is the beginning of that."""
    *_, steady = stages(Load(arrival="poisson", rate=5.0, duration_s=10.0, warmup_requests=2))

    assert (None, 10.0, 2) == (steady.concurrency, steady.duration_s, steady.lead_requests)


def test_a_replay_is_replayed_whole():
    """No request of a trace is a warm-up, unless a time is given for it."""
    load = Load(arrival="replay", replay="trace.jsonl", warmup_requests=2)

    assert (0, 0.0) == (stages(load)[-1].lead_requests, stages(load)[-1].lead_s)


def test_a_slow_model_gets_more_time():
    """A dozen answers at the pace of the baseline: 12 x 4 s instead of the 10 s asked for."""
    load = Load(duration_s=10.0, warmup_requests=1, baseline_requests=2)
    done = (
        Phase(name="warmup", start_s=0.0, end_s=4.0),
        Phase(name="baseline", start_s=4.0, end_s=12.0, concurrency=1),
    )

    assert 48.0 == stages(load, phases=done)[-1].duration_s
