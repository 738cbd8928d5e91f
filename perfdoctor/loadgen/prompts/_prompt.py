"""What a request says, before any protocol puts it into a body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol as Interface

Message = tuple[str, str]  # (role, text)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of one request. `follow_up` gives the next turn of a conversation, from the answer."""

    messages: tuple[Message, ...]
    output_tokens: int
    variables: Mapping[str, str] = field(default_factory=dict)  # for the templates of `--api http`
    turn: int | None = None
    pause_s: float = 0.0  # before it is sent, after the answer to the turn before
    follow_up: Callable[[str], Prompt | None] | None = None

    @property
    def digest(self) -> str:
        """16 hex digits; equal for equal content."""
        content = "\0".join(part for message in self.messages for part in message)
        return blake2b(content.encode("utf-8", "replace"), digest_size=8).hexdigest()


class Source(Interface):
    """Gives a prompt for each request by its number: the same seed and number, the same prompt.

    `count`: how many there are before they repeat; None: no end. `variables`: those that every prompt brings.
    `speaks`: every prompt has messages, not variables alone.
    """

    count: int | None
    variables: tuple[str, ...]
    speaks: bool

    def prompt(self, request: int) -> Prompt: ...
