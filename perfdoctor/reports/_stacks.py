"""Reads folded stacks (`frame;frame count` a line) into the frames that were seen most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frame:
    """`own`: share of samples in which it was innermost; `total`: in which it was anywhere on the stack."""

    name: str
    own: float
    total: float


def top_frames(folded: str, most: int = 12) -> tuple[Frame, ...]:
    """The frames with the largest own share. Lines without a count are skipped."""
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    everything = 0
    for line in folded.splitlines():
        stack, _, text = line.rpartition(" ")
        if not stack or not text.isascii() or not text.isdigit():
            continue
        frames, count = stack.split(";"), int(text)
        everything += count
        own[frames[-1]] += count
        total.update(dict.fromkeys(frames, count))
    if not everything:
        return ()
    return tuple(Frame(n, c / everything, total[n] / everything) for n, c in own.most_common(most))
