"""Plain English of any length, made from a seed; the unit of length is the word, or a tokenizer's token."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

_SUBJECTS = (
    "the harbour", "an old clock", "the night train", "a quiet library", "the northern wind",
    "her neighbour", "the small bakery", "a retired engineer", "the river", "the committee",
    "a travelling musician", "the garden", "his younger brother", "the lighthouse", "a careful reader",
    "the market", "the orchestra", "a stray dog",
)  # fmt: skip
_VERBS = (
    "remembers", "explains", "carries", "measures", "follows", "repairs", "describes", "surprises", "watches",
    "answers", "collects", "compares", "forgets", "paints", "teaches", "questions", "protects", "counts",
)  # fmt: skip
_OBJECTS = (
    "every bridge in the city", "the price of bread", "a letter from the coast", "the colour of the morning",
    "three kinds of honest work", "the length of a summer day", "a broken radio", "the weight of good advice",
    "the sound of distant bells", "two questions without answers", "a map of the old town", "the last page",
    "the rules of the game", "a basket of green apples", "the history of the valley", "an unfinished story",
)  # fmt: skip
_LINKS = ("because", "while", "although", "until", "whenever", "and later", "so that", "after")
_COLUMNS = (_SUBJECTS, _VERBS, _OBJECTS, _LINKS)
_CLAUSE_WORDS = 10  # about


def words(rng: random.Random, count: int) -> list[str]:
    """`count` words of sentences without an end."""
    clauses = count // _CLAUSE_WORDS * 2 + 2
    columns = [rng.choices(column, k=clauses) for column in _COLUMNS]
    return " ".join(part for clause in zip(*columns, strict=True) for part in clause).split(" ")[:count]


class Ruler:
    """Cuts texts to a length. Without a tokenizer one word is one unit.

    With one, the length of a text is the sum of its words' lengths, each with the blank before it; that holds
    for tokenizers that part words first, which is nearly all, and is checked by the first prompt (see fit).
    """

    def __init__(self, count: Callable[[str], int] | None = None) -> None:
        self._count = count
        self._lengths = {word: self._measure(word) for word in _vocabulary()} if count else {}
        self._filler = next((word for word in ("the", "a", "and") if self._lengths.get(word) == 1), "the")

    def length(self, text: str) -> int:
        return self._count(text) if self._count else len(text.split())

    def body(self, rng: random.Random, length: int) -> str:
        """A text of this length, to stand after other words."""
        if length <= 0:
            return ""
        drawn = words(rng, length)
        if not self._lengths:
            return " ".join(drawn)
        ends = itertools.accumulate(self._lengths[word] for word in drawn)
        kept = [(word, end) for word, end in zip(drawn, ends, strict=True) if end <= length]
        missing = length - (kept[-1][1] if kept else 0)
        return " ".join([*(word for word, _ in kept), *[self._filler] * missing])

    def cut(self, text: str, length: int) -> str:
        """The beginning of a text, of this length as nearly as whole words allow and never above it."""
        all_words = text.split(" ")
        if not self._lengths:
            return " ".join(all_words[:length])
        ends = itertools.accumulate(self._lengths.get(word) or self._measure(word) for word in all_words)
        return " ".join(word for word, end in zip(all_words, ends, strict=True) if end <= length)

    def _measure(self, word: str) -> int:
        assert self._count
        return self._count(f"so {word}") - self._count("so")


def _vocabulary() -> set[str]:
    return {word for column in _COLUMNS for phrase in column for word in phrase.split(" ")}
