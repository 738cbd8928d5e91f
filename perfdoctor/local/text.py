"""Tokens to text, one at a time: whole UTF-8 characters only, reasoning told from the answer. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

Kind = Literal["reasoning", "answer"]
REPLACEMENT = "�"  # a decoder's sign for bytes that make no character (yet)
PENDING_LIMIT = 4  # tokens; a UTF-8 character has at most 4 bytes, so longer is not going to become one


class Detokenizer:
    """`push` gives the text that a token completes: "" while a character is still in pieces.

    Ids from `known` on have no text (a random model with another model's tokenizer prints them): they read
    as ` t123`, so that every such token is visible. The last emitted tokens are decoded along, since what a
    token reads like may depend on the one before it.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], known: int) -> None:
        self._decode, self._known = decode, known
        self._context: list[int] = []
        self._pending: list[int] = []

    def push(self, token: int) -> str:
        if token >= self._known:
            return self.flush() + f" t{token}"
        self._pending.append(token)
        text = self._new_text()
        if text.endswith(REPLACEMENT) and len(self._pending) < PENDING_LIMIT:
            return ""
        self._context, self._pending = self._pending, []
        return text

    def flush(self) -> str:
        """What is still held, as far as it can be shown; call it at the end."""
        text = self._new_text() if self._pending else ""
        self._context, self._pending = self._pending, []
        return text

    def _new_text(self) -> str:
        before = self._decode(self._context) if self._context else ""
        return self._decode(self._context + self._pending)[len(before) :]


class Splitter:
    """Which part of a chat answer a token belongs to; None for a marker, which is neither.

    `opening` and `closing` are the ids of `<think>` and `</think>`, None where the vocabulary has none.
    """

    def __init__(self, opening: int | None, closing: int | None, reasoning: bool) -> None:
        self._opening, self._closing, self.reasoning = opening, closing, reasoning

    def place(self, token: int) -> Kind | None:
        if token in (self._opening, self._closing):
            self.reasoning = token == self._opening
            return None
        return "reasoning" if self.reasoning else "answer"


def opens_reasoning(prompt: str) -> bool:
    """Whether a rendered prompt ends inside a reasoning block, as DeepSeek-R1's template leaves it."""
    return prompt.rfind("<think>") > prompt.rfind("</think>")


def plain_chat(messages: Sequence[tuple[str, str]]) -> str:
    """(role, text) turns as a prompt, for a model whose tokenizer has no chat template."""
    return "".join(f"{role}: {text}\n" for role, text in messages) + "assistant:"
