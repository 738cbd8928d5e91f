"""Which experiments a run makes, from its orders."""

from __future__ import annotations

import pytest

from perfdoctor.experiments import LONGEST_S, plan
from perfdoctor.model import Load, Prompts, Scenario, Target


def scenario(target: Target | None = None, **load) -> Scenario:
    fields = {"experiments": True, "prompts": Prompts(input_tokens=100), **load}
    return Scenario(target=target or Target(endpoint="http://h"), load=Load(**fields))


def test_one_thing_is_changed_at_a_time():
    """The same prompt length twice, once with one prompt for all; and twice the length."""
    stages = {stage.kind: stage for stage, _ in plan(scenario(), 1.0)}

    assert (100, 200, 100) == tuple(stages[k].prompt_tokens for k in ("usual", "long_prompt", "repeated"))
    assert [False, False, True] == [stages[k].same_prompt for k in ("usual", "long_prompt", "repeated")]
    assert {2} == {stage.output_tokens for stage in stages.values()}
    assert {1} == {stage.concurrency for stage in stages.values()}


@pytest.mark.parametrize(
    "orders",
    [
        scenario(experiments=False),
        scenario(prompts=Prompts(source="jsonl", file="x")),
        scenario(prompts=Prompts(input_tokens="uniform(1,9)")),
        scenario(prompts=Prompts(turns=2)),
        scenario(Target(endpoint="http://h", stream=False)),
        scenario(Target(endpoint="http://h", api="http")),
    ],
)
def test_where_nothing_could_be_compared_nothing_is_tried(orders):
    """Switched off, other prompts than made-up ones of one length, no first token to time."""
    assert () == plan(orders, 1.0)


def test_a_slow_server_is_not_asked_a_dozen_times_more():
    """At the limit it still is; without a baseline nobody knows, and it is."""
    assert () != plan(scenario(), LONGEST_S)
    assert () == plan(scenario(), LONGEST_S + 0.1)
    assert () != plan(scenario(), None)
