"""Part of the model runs on the CPU.

What: a runtime that splits a model by layers found no room on the GPU for all of them and
computes the others on the CPU, for each token, while the GPU waits.

Cost: most of the decode time. The share of layers understates it: a layer on the CPU takes ten and more times
as long, and the largest one may be the one left out. GPU and CPU take turns, so both look half idle.

Told apart from weights-offloaded by who computes: there the GPU does, and the weights travel to it.
"""

from perfdoctor.diagnosis.rule import Rule, all_of, at_least, below

RULE = Rule(
    cls="pcie-offload",
    title="Part of the model runs on the CPU",
    when=all_of(
        at_least("model.on_host.share", 0.01, source="one layer of a hundred already sets the pace"),
        below("model.on_host.share", 1.0, source="all of it: the GPU is not used at all"),
    ),
    cost=("decode", "decode.memory", "decode.compute"),
    support=(below("gpu.sm_active.steady.p50", 0.50, source="the GPU waits for the CPU's layers"),),
    explains=("bandwidth-bound-decode", "launch-bound-decode"),
    says=(
        "Split: {model.on_host.share} of the model are on the CPU",
        "{gpu.sm_active.steady.p50} of the multiprocessors have work",
    ),
)
