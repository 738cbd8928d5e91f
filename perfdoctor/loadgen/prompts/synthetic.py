"""Synthetic prompts: plain English, made offline, each with a prefix nobody sent before.

Prefix caches are on by default (llama.cpp, vLLM): a repeated prompt measures the cache, not the server. A
prompt therefore starts with words that no other request of any run is likely to start with, unless a shared
prefix is asked for: then all prompts of a run start with the same words, and differ after them.

Lengths are in tokens of the user's text, without what the server's chat template adds. With a tokenizer they
are exact. Without, a word stands for a token: vocabularies of 100,000 and more have 1.0 tokens for a word of
this English, and some 15 more for the number that makes a prompt unique (measured: 63 tokens for 48 words,
531 for 512); small vocabularies have two or three times as many. The server's own count is in every record.
"""

from __future__ import annotations

import random

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.lengths import Lengths, parse_lengths
from perfdoctor.loadgen.prompts._prompt import Message, Prompt
from perfdoctor.loadgen.prompts._words import Ruler
from perfdoctor.loadgen.tokens import load_counter
from perfdoctor.model import Prompts

_ENDING = "nobody asks. Tell me what happens next."
_WORDS = Ruler()
_ROUNDS = 12  # of making a text again, where a tokenizer's lengths do not add up
_TRIALS = 8
_SHORTEST = 64  # tokens; a text of the frame alone shows nothing


def make_prompt(seed: int, request: int, length: int, run: int = 0, ruler: Ruler = _WORDS) -> str:
    """A prompt of `length` units of the ruler, a dozen words at least.

    The same seed and request give the same text, after an opening that `run` makes different in each run:
    a server that is measured twice must not answer from what it remembers of the first time.
    """
    rng = random.Random((seed << 32) + request)
    opening = f"Note {(run ^ rng.getrandbits(64)) % 2**64:016x} of reader {request}:"
    body = ruler.body(rng, length - ruler.length(opening) - ruler.length(f" {_ENDING}"))
    return " ".join(part for part in (opening, body, _ENDING) if part)


def make_shared_prefix(seed: int, length: int, run: int, ruler: Ruler = _WORDS) -> str:
    """What all prompts of a run begin with; another in each run."""
    if not length:
        return ""
    rng = random.Random(~seed)
    opening = f"To all readers of {(run ^ rng.getrandbits(64)) % 2**64:016x}:"
    return f"{opening} {ruler.body(rng, length - ruler.length(opening))}".rstrip()


class Synthetic:
    """Made-up prompts and conversations, without an end.

    Each turn of a conversation is a prompt of the input length; the answers between them are the server's.
    """

    count: int | None = None
    variables: tuple[str, ...] = ()
    speaks = True

    def __init__(self, prompts: Prompts, seed: int, run: int) -> None:
        self._seed, self._run, self._turns = seed, run, prompts.turns
        self._input = parse_lengths(prompts.input_tokens, "--prompt-tokens")
        self._output = parse_lengths(prompts.output_tokens, "--output-tokens")
        self._ruler = Ruler(load_counter(prompts.tokenizer)) if prompts.tokenizer else _WORDS
        self._prefix = make_shared_prefix(seed, prompts.shared_prefix_tokens, run, self._ruler)
        self._prefix_length = self._ruler.length(self._prefix)
        _check_prefix(prompts.shared_prefix_tokens, self._input)
        self._rounds = 1
        if prompts.tokenizer and not self._adds_up():
            self._rounds = _ROUNDS

    def prompt(self, request: int) -> Prompt:
        return self._turn(request, 1, ())

    def _adds_up(self) -> bool:
        """Whether this tokenizer's length of a text is the sum of its words', so that no text of the load
        need be encoded to know."""
        lengths = [max(_SHORTEST, self._input.typical) + more for more in range(_TRIALS)]
        return all(self._ruler.length(self._text(n, 1, length)) == length for n, length in enumerate(lengths))

    def _turn(self, request: int, turn: int, before: tuple[Message, ...]) -> Prompt:
        rng = random.Random(f"{self._seed} {request} {turn}")
        length = self._input.draw(rng)
        text = self._text(request, turn, length)
        messages = (*before, ("user", text))

        def follow_up(answer: str) -> Prompt | None:
            return self._turn(request, turn + 1, (*messages, ("assistant", answer)))

        return Prompt(
            messages,
            self._output.draw(rng),
            turn=turn if self._turns > 1 else None,
            follow_up=follow_up if turn < self._turns else None,
        )

    def _text(self, request: int, turn: int, length: int) -> str:
        prefix = self._prefix if turn == 1 else ""
        seed = self._seed + ((turn - 1) << 20)
        asked, text = length - (self._prefix_length if prefix else 0), ""
        for _ in range(self._rounds):
            text = f"{prefix} {make_prompt(seed, request, asked, self._run, self._ruler)}".lstrip()
            wrong = self._ruler.length(text) - length if self._rounds > 1 else 0
            if not wrong:
                break
            asked -= wrong
        return text


def _check_prefix(shared: int, lengths: Lengths) -> None:
    if shared < 0 or (shared and shared >= lengths.typical):
        raise UsageError(
            f"--shared-prefix {shared} does not leave room in prompts of {lengths.typical} tokens",
            "The shared prefix is a part of --prompt-tokens.",
            f"--shared-prefix {lengths.typical // 2}, or longer prompts",
        )


SOURCE = Synthetic
