"""Reading prompts keeps the arithmetic units busy for most of a request.

What: prompts are long and answers short, so most of a request is one large matrix product after another. That
is healthy for the device; it is the cost of the traffic.

Cost: the prefill. Prefix caching, shorter prompts and narrower number formats shorten it; a faster memory or
launcher does not. A prompt of a few hundred tokens costs what a decode step costs and is no such case.

Told apart from waiting in the queue, from launch-bound prefill by prompts that take longer when they are
longer.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, any_of, at_least, below
from perfdoctor.diagnosis.rules._conditions import CLIENT_LIMITED

RULE = Rule(
    cls="compute-prefill",
    title="Reading prompts is most of a request",
    when=all_of(
        at_least("request.prefill.share", 0.50, source="the larger part of a request"),
        any_of(
            at_least("gpu.tensor_active.prefill.p50", 0.40, source="measured on an H200: 0.47 at 8k tokens"),
            at_least(
                "prefill.tensor_rate.share",
                0.15,
                source="guess; on an H200 prompts of 8,192 tokens make 0.33, of 128 tokens 0.02",
            ),
            at_least("prefill.stretch", 1.6, source="guess: twice the prompt takes most of twice the time"),
        ),
    ),
    cost=("prefill", "prefill.compute", "prefill.memory"),
    told_apart=(
        Neighbour(
            "launch-bound prefill",
            below("prefill.stretch", 1.2, source="guess: twice the prompt costs no more to start"),
            refutes=True,
        ),
        CLIENT_LIMITED,
    ),
    experiment=at_least("prefill.stretch", 1.6, source="twice the prompt takes most of twice the time"),
    says=(
        "Prefill: reading the prompt is {request.prefill.share} of a request",
        "{prefill.tokens_per_s} prompt tokens a second",
        "twice the prompt takes {prefill.stretch} times as long",
        "tensor units are {gpu.tensor_active.prefill.p50} busy meanwhile",
    ),
)
