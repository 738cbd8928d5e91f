"""The GPU is busy with kernels too small to fill it.

What: launching is no longer the price (a compiled or captured step), and memory is far from full: a thousand
small kernels a token, each with a start and an end that fill nothing.

Cost: device time beyond what the memory needs. Fewer bytes help little; serving more requests in one step, or
fusing kernels, does.

Told apart from memory bandwidth by DRAM traffic, from arithmetic by the tensor units, from launch-bound
decoding by a GPU that is busy most of the time, from another program's kernel by multiprocessors with no
work.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least, below

RULE = Rule(
    cls="small-kernels",
    title="Kernels are too small to fill the GPU",
    when=all_of(
        at_least("gpu.used", 1, source="the model runs on a GPU"),
        at_least("gpu.graphics_active.decode.p50", 0.60, source="the limit of launch-bound-decode"),
        below("gpu.dram_active.decode.p50", 0.50, source="guess: memory could deliver almost twice as much"),
        below("gpu.tensor_active.decode.p50", 0.30, source="guess: arithmetic is not the price"),
        below("gpu.sm_active.decode.p50", 0.75, source="guess: a quarter of the GPU has nothing to do"),
    ),
    cost=("decode.compute",),
    told_apart=(
        Neighbour(
            "another program's kernel",
            below(
                "gpu.sm_active.decode.p50",
                0.02,
                source="measured on an H200: a spinning thread reads 0.8 %, any model more",
            ),
            refutes=True,
        ),
        Neighbour(
            "launch-bound-decode",
            below("step.device.share", 0.60, source="below it a perfect launcher gives > 1.6 x"),
            refutes=True,
        ),
    ),
    says=(
        "Small kernels: the GPU runs kernels {gpu.graphics_active.decode.p50} of the time, but only "
        "{gpu.sm_active.decode.p50} of its multiprocessors have work",
        "memory is {gpu.dram_active.decode.p50} used",
        "{step.launches} kernel launches a token",
    ),
)
