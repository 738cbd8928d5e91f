"""Each token computes the whole answer again: the KV cache is off, or its contents do not last.

What: `use_cache=False`, a template that changes what was already said, or a cache that is thrown away between
steps. The time of a token then grows with its place in the answer.

Cost: the growth, of every answer. The documents recommend to switch the cache off; on a host-bound GPU that
looks harmless for short answers, which is how such advice comes to be.

Told apart from long contexts, whose attention grows too but slowly, by how fast it grows; from short prompts
on a host-bound device by the device's share of a step; from a server that fills up while answers are written,
by one request at a time.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, any_of, at_least
from perfdoctor.diagnosis.rules._conditions import CPU_CONTENDED

RULE = Rule(
    cls="kv-cache",
    title="Each token computes the whole answer again",
    when=any_of(
        at_least(
            "decode.growth", 1.5, source="guess: attention alone grows by hundredths in some hundred tokens"
        ),
        all_of(
            at_least("context.mean", 1000, source="guess: a shorter prompt costs what a step costs anyway"),
            at_least("step.device.share", 0.60, source="the limit of launch-bound-decode"),
            at_least(
                "decode.of_prefill.share", 0.70, source="measured on an H200: 1.0 without, 0.06 with it"
            ),
        ),
    ),
    cost=("decode.compute", "decode.memory"),
    told_apart=(
        Neighbour(
            "cpu-contention",
            CPU_CONTENDED,
        ),
        Neighbour(
            "kv-cache-full",
            at_least("engine.preempted.share", 0.02, source="the limit of kv-cache-full"),
        ),
    ),
    says=(
        "No KV cache: a token late in an answer takes {decode.growth} times as long as an early one",
        "a token takes {decode.of_prefill.share} of the time of reading the prompt",
    ),
)
