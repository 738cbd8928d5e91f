"""Synthetic prompts: plain English, made offline, each with a prefix nobody sent before.

Prefix caches are on by default (llama.cpp, vLLM): a repeated prompt measures the cache, not the server. A
prompt therefore starts with words that no other request of any run is likely to start with.
"""

from __future__ import annotations

import random

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


def make_prompt(seed: int, request: int, words: int) -> str:
    """About `words` words (at least a dozen); the same seed and request give the same text."""
    rng = random.Random(f"{seed}/{request}")
    parts = [f"Note {rng.getrandbits(40):010x} of reader {request}:"]
    count = len(parts[0].split())
    while count < words - _ENDING_WORDS:
        clause = f"{rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} {rng.choice(_OBJECTS)} {rng.choice(_LINKS)}"
        parts.append(clause)
        count += len(clause.split())
    return " ".join(parts) + _ENDING


_ENDING = " nobody asks. Tell me what happens next."
_ENDING_WORDS = len(_ENDING.split())
