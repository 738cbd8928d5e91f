"""Short experiments after the load: one request at a time, one thing changed. Pure: orders in, stages out.

A difference between two of them is what the changed thing costs: twice the prompt tells what reading it
costs, the same prompt again what a prefix cache saves. They are announced, take seconds, and can be switched
off.
"""

from __future__ import annotations

from perfdoctor.loadgen.stage import Stage
from perfdoctor.model import Scenario

EACH = 3  # requests: the least that has a median
TOKENS = 2  # of each answer: the time to the first one is what is compared
LONGEST_S = 6.0  # of one request at a time; slower servers are not asked a dozen times more


def plan(scenario: Scenario, pace_s: float | None) -> tuple[tuple[Stage, str], ...]:
    """Stages with their titles; none where prompts are not made up here, nothing is streamed, or each request
    takes longer than six seconds."""
    load, target = scenario.load, scenario.target
    length = load.prompts.input_tokens
    made_up = load.prompts.source == "synthetic" and load.prompts.turns == 1 and isinstance(length, int)
    if not (load.experiments and made_up and target.stream and target.api != "http"):
        return ()
    if pace_s is not None and pace_s > LONGEST_S:
        return ()
    assert isinstance(length, int)
    return (
        (_stage("usual", length), "Experiment: short answers"),
        (_stage("long_prompt", 2 * length), "Experiment: twice the prompt"),
        (_stage("repeated", length, same_prompt=True), "Experiment: the same prompt again"),
    )


def _stage(kind: str, prompt_tokens: int, same_prompt: bool = False) -> Stage:
    return Stage(
        "experiment",
        1,
        requests=EACH + same_prompt,  # the first of the same prompts is a new one
        output_tokens=TOKENS,
        kind=kind,
        prompt_tokens=prompt_tokens,
        same_prompt=same_prompt,
    )
