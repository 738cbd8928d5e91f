"""Synthetic prompts: plain English, made offline, each with a prefix nobody sent before.

Prefix caches are on by default (llama.cpp, vLLM): a repeated prompt measures the cache, not the server. A
prompt therefore starts with words that no other request of any run is likely to start with.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from perfdoctor.loadgen.prompts._prompt import Prompt
from perfdoctor.model import Prompts

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


_CLAUSE_WORDS = 10  # about
_ENDING = "nobody asks. Tell me what happens next."


def make_prompt(seed: int, request: int, words: int, run: int = 0) -> str:
    """A prompt of `words` words (at least a dozen).

    The same seed and request give the same text, after an opening that `run` makes different in each run:
    a server that is measured twice must not answer from what it remembers of the first time.
    """
    rng = random.Random((seed << 32) + request)
    opening = f"Note {(run ^ rng.getrandbits(64)) % 2**64:016x} of reader {request}:"
    body_words = max(0, words - len(opening.split()) - len(_ENDING.split()))
    clauses = body_words // _CLAUSE_WORDS * 2 + 2
    columns = [rng.choices(column, k=clauses) for column in (_SUBJECTS, _VERBS, _OBJECTS, _LINKS)]
    body = " ".join(part for clause in zip(*columns, strict=True) for part in clause)
    return " ".join([opening, *body.split(" ")[:body_words], _ENDING])


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Made-up prompts of one length."""

    prompts: Prompts
    seed: int
    run: int
    count: int | None = None
    variables: tuple[str, ...] = ()

    def prompt(self, request: int) -> Prompt:
        text = make_prompt(self.seed, request, int(self.prompts.input_tokens), self.run)
        return Prompt((("user", text),), int(self.prompts.output_tokens))


SOURCE = Synthetic
