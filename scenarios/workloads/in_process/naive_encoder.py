"""Byte-pair encoding as it is often written by hand: in Python, looking at every pair anew for each merge."""

import functools
import itertools
from collections import Counter

MOST_MERGES = 60


def before(encode):
    """`encode`, with the text encoded once more by hand before; what that gives is thrown away."""

    @functools.wraps(encode)
    def slow(tokenizer, text=None, *args, **kwargs):
        if isinstance(text, str):
            merge(text)
        return encode(tokenizer, text, *args, **kwargs)

    return slow


def merge(text):
    """The text's pieces after merging its most frequent pair, again and again."""
    pieces = list(text)
    for _ in range(MOST_MERGES):
        pairs = Counter(itertools.pairwise(pieces))
        if not pairs:
            break
        pair, count = pairs.most_common(1)[0]
        if count < 2:
            break
        pieces = _joined(pieces, pair)
    return pieces


def _joined(pieces, pair):
    found, i = [], 0
    while i < len(pieces):
        if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == pair:
            found.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            found.append(pieces[i])
            i += 1
    return found
