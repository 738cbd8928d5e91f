"""In which order the runs are made. Pure.

One run of a side alone, then pairs whose order turns round each time: A, AB, BA, AB ... Every two neighbours
of one side are then a pair of equals: one run more gives as many equal pairs, for the noise, as there are
pairs. What drifts in one direction hits both sides alike. The seed says which side begins.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from perfdoctor.model import SideName, TriedRun

LEAST_PAIRS = 5


def sequence(pairs: int, seed: int) -> tuple[TriedRun, ...]:
    """`pair` counts from 1; the run alone has 0."""
    first: SideName = random.Random(seed).choice(("before", "after"))
    found, last = [TriedRun(side=first, pair=0)], first
    for pair in range(1, pairs + 1):
        other: SideName = "after" if last == "before" else "before"
        found += [TriedRun(side=last, pair=pair), TriedRun(side=other, pair=pair)]
        last = other
    return tuple(found)


def pairs_of(runs: Sequence[TriedRun]) -> list[tuple[TriedRun, TriedRun]]:
    """(before, after) of each pair both of whose runs count."""
    by_pair: dict[int, dict[SideName, TriedRun]] = {}
    for run in runs:
        if run.pair and run.value and not run.left_out:
            by_pair.setdefault(run.pair, {})[run.side] = run
    return [(sides["before"], sides["after"]) for sides in by_pair.values() if len(sides) == 2]


def equal_ratios(runs: Sequence[TriedRun]) -> list[float]:
    """Second over first of two runs of one side that were made one after the other."""
    return [
        b.value / a.value
        for a, b in itertools.pairwise(runs)
        if a.side == b.side and a.value and b.value and not a.left_out and not b.left_out
    ]
