"""Weights are dropped from memory and read from storage again while serving.

What: the weights are mapped from their file, and memory is too small for them and everything else: a
container limit, a second model, a copy job that fills the page cache. Each token touches all weights, so what
was dropped is read again for each token.

Cost: the time the server's threads wait for storage. Few major faults are no proof of health, since one of
them reads megabytes ahead; refaulted pages are counted instead.

Told apart from swapping, which brings back memory of its own, and from weights in a GPU, which never fault.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, any_of, at_least

RULE = Rule(
    cls="page-cache",
    title="Weights are read from storage again while serving",
    when=all_of(
        at_least("memory.refault.share", 0.01, source="guess: a hundredth of the weights for each token"),
        any_of(
            at_least("io.blocked.share", 0.05, source="guess: less is not worth a change"),
            at_least("memory.psi_full.share", 0.05, source="guess: the same for the whole host"),
        ),
    ),
    cost=("io_stall",),
    told_apart=(
        Neighbour(
            "weights in a GPU",
            at_least("gpu.used", 1, source="what a GPU holds is not in the page cache"),
            refutes=True,
        ),
        Neighbour(
            "swapping",
            at_least("memory.swap_in.rate", 1e6, source="guess: a megabyte a second is no accident"),
        ),
    ),
    explains=("bandwidth-bound-decode",),
    says=(
        "Page cache thrash: {memory.refault.share} of the weights are read again for each token",
        "the server's threads wait for storage {io.blocked.share} of the time",
    ),
)
