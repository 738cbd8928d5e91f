"""Another program works on the same GPU, and the model's kernels wait for it.

What: kernels of two processes take turns on a GPU, and share its memory's bandwidth. The counters are the
device's, so they show both; the pace of tokens shows the model's own part.

Cost: device time of the model, of which an unknown part is the other's. Only running without the other tells
how much, so this is never more than a pattern.

Told apart from a model that waits for its host by the device's share of a step, and by how few launches a
replayed step has: a model that launches each kernel itself does not notice its neighbour, and one that does
not has gaps that look like launches, but are the other's turns.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, any_of, at_least, below

RULE = Rule(
    cls="gpu-contention",
    title="Another program works on the same GPU",
    when=all_of(
        at_least("gpu.used", 1, source="the model runs on a GPU"),
        at_least("gpu.neighbours.max", 1, source="another process computes there"),
        any_of(
            at_least(
                "gpu.foreign_dram.share", 0.20, source="guess: a fifth of the bandwidth is no small program"
            ),
            at_least("gpu.others.busy.share", 0.20, source="guess: a fifth of the time; kernels take turns"),
        ),
        any_of(
            at_least(
                "step.device.share", 0.50, source="guess: below half, the device is not what is waited for"
            ),
            below("step.launches", 300, source="guess; a replayed step makes 44, its gaps are no launches"),
        ),
    ),
    cost=("decode.compute", "decode.memory"),
    explains=("small-kernels", "bandwidth-bound-decode", "launch-bound-decode"),
    told_apart=(
        Neighbour(
            "its own traffic; only a run without the other program tells",
            below("gpu.foreign_dram.share", 2.0, source="no share is above one: it can never be excluded"),
        ),
    ),
    says=(
        "Shared GPU: {gpu.neighbours.max} beside the server",
        "{gpu.foreign_dram.share} of the memory's bandwidth is not the model's",
        "a kernel of another program is resident {gpu.others.busy.share} of the time",
    ),
)
