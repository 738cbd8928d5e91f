"""The server's threads run on another NUMA node than their GPU.

What: on a host of several nodes the scheduler put the server, or somebody pinned it, across the link between
sockets from the GPU: launches, copies and the memory they read from cross that link.

Cost: not known from one run. Measured gains of binding range from none to a third; only an A/B run under
numactl tells, so this is never more than a pattern.

Told apart from launch-bound decoding and offloading by nothing but that run: it makes both slower. A host of
one node, or one that does not tell its GPU's node, is not judged.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least, below

RULE = Rule(
    cls="numa",
    title="Threads run on another NUMA node than their GPU",
    when=all_of(
        at_least("gpu.used", 1, source="the model runs on a GPU"),
        at_least("numa.far.share", 0.50, source="guess: most of its CPU time"),
    ),
    told_apart=(
        Neighbour(
            "no gain by binding; only a run under numactl tells",
            below("numa.far.share", 2.0, source="no share is above one: it can never be excluded"),
        ),
    ),
    says=("NUMA: {numa.far.share} of the server's CPU time is on another node than its GPU",),
)
