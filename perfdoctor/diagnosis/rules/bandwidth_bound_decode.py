"""Decoding is as fast as memory delivers the weights.

What: one token needs every weight once, so a step cannot be shorter than the weights' bytes over the
memory's bandwidth. The state is reached when traffic is near what a plain copy reaches while the arithmetic
units wait.

Cost: the time memory needs for the step's bytes. Software can only reduce bytes (smaller dtype, quantised
weights with fused kernels) or share them (serve several requests in one step).

Told apart from launch overhead by the idle gaps, from compute by the tensor units, from another process on
the same GPU by comparing the traffic measured with the traffic this server's own pace implies. Limits: 0.7 of
the copy ceiling by counters (0.89 of the datasheet); 0.6 of the datasheet when inferred from the pace of
tokens, and 0.5 of a ceiling calibrated on this very machine; both of the latter say so in their evidence.
Weights that fit in a CPU's caches are not judged. `utilization.memory` is never used.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least, below, first_known
from perfdoctor.diagnosis.rules._conditions import CLIENT_LIMITED

DRAM_BUSY = at_least("gpu.dram_active.decode.p50", 0.623, source="0.7 of a copy, which reads 0.89 on an H200")

RULE = Rule(
    cls="memory-bandwidth",
    title="Memory bandwidth sets the pace of decoding",
    when=first_known(
        all_of(
            DRAM_BUSY,
            below(
                "gpu.tensor_active.decode.p50",
                0.30,
                source="on an H200 decode reads 0.03, dense products 0.9",
            ),
        ),
        at_least(
            "roof.physical.share",
            0.60,
            source="inferred from tokens, no counters here; tuned decode reaches 0.65-0.85",
        ),
        all_of(
            at_least("step.bytes", 64e6, source="guess: more than a CPU's caches hold"),
            at_least(
                "roof.memory.share",
                0.50,
                source="memory at its best needs half of the step or more: the largest term",
            ),
        ),
    ),
    cost=("decode.memory",),
    told_apart=(
        Neighbour(
            "launch-overhead",
            first_known(
                below("step.device.share", 0.60, source="below it a perfect launcher gives > 1.6 x"),
                below(
                    "gpu.graphics_active.decode.p50", 0.60, source="below it a perfect launcher gives > 1.6 x"
                ),
                below("step.kernel.share", 0.50, source="guess: more overhead than arithmetic"),
            ),
        ),
        Neighbour(
            "noisy-neighbour",
            all_of(
                at_least("gpu.used", 1, source="counters of a GPU are device-wide"),
                below("roof.physical.share", 0.30, source="guess: half of what the counters say is not ours"),
            ),
        ),
        Neighbour(
            "cpu-contention",
            at_least(
                "cpu.serving.runq_wait.share", 0.10, source="guess; one busy rival on the core makes 0.5"
            ),
        ),
        CLIENT_LIMITED,
    ),
    says=(
        "Memory-bound decode: a token reads {step.bytes}, {roof.implied.rate} at this pace",
        "that is {roof.memory.share} of the {roof.achievable.rate} in reach here",
        "DRAM is active {gpu.dram_active.decode.p50}, tensor units {gpu.tensor_active.decode.p50}",
        "arithmetic kernels fill {step.kernel.share} of the step",
    ),
)
