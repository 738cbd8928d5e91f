"""One row of a file of prompts: what it says, how long its answer may be, and its other columns. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from perfdoctor.loadgen.lengths import LONGEST
from perfdoctor.loadgen.prompts._prompt import Message, Prompt

LIMITS = ("max_tokens", "output_tokens", "max_completion_tokens", "output_length")
_NUMBER = re.compile(r"\s*[0-9]{1,9}\s*")
_TEXTS = ("prompt", "text")
_SAID = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "system": "system"}


class BadRow(Exception):
    """Why a row is none. The file and the line are known to the caller."""


@dataclass(frozen=True, slots=True)
class Row:
    """`messages` of the first request; `later`: what the user says in the turns after it."""

    messages: tuple[Message, ...]
    later: tuple[str, ...] = ()
    output_tokens: int | None = None  # None: the load's
    variables: Mapping[str, str] = field(default_factory=dict)

    def prompt(self, output_tokens: int) -> Prompt:
        return _turn(self, self.messages, 0, self.output_tokens or output_tokens)


def read_row(value: Mapping[str, Any]) -> Row:
    """A row from its members. One without any text has only variables, for the templates of --api http."""
    later: tuple[str, ...] = ()
    if value.get("messages") is not None:
        messages = _read_messages(value["messages"])
    elif value.get("conversations") is not None:
        messages, later = _read_conversation(value["conversations"])
    else:
        text = next((value[key] for key in _TEXTS if value.get(key) is not None), None)
        if text is not None and (not isinstance(text, str) or not text.strip()):
            raise BadRow("its prompt is no text, or an empty one")
        messages = () if text is None else (("user", text),)
    columns = {key: _as_text(item) for key, item in value.items() if item is not None}
    return Row(messages, later, _read_limit(value), columns)


def _read_messages(value: Any) -> tuple[Message, ...]:
    """As they stand, but an answer at the end is what the model is to say itself."""
    if not isinstance(value, list):
        raise BadRow("its messages are no list")
    messages = tuple(_read_message(item) for item in value)
    while messages and messages[-1][0] == "assistant":
        messages = messages[:-1]
    if not messages:
        raise BadRow("its messages hold no question")
    return messages


def _read_message(value: Any) -> Message:
    role = value.get("role") if isinstance(value, dict) else None
    content = value.get("content") if isinstance(value, dict) else None
    if isinstance(content, list):
        parts = [
            part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"
        ]
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(role, str) or not isinstance(content, str):
        raise BadRow("a message needs a role and a content of text")
    return role, content


def _read_conversation(value: Any) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """(the first request, the user's later turns). The answers in the file are not sent: each turn continues
    what the server itself has said."""
    if not isinstance(value, list):
        raise BadRow("its conversations are no list")
    turns = [_read_turn(item) for item in value]
    system = tuple(turn for turn in turns[:1] if turn[0] == "system")
    asked = [text for role, text in turns if role == "user" and text.strip()]
    if not asked:
        raise BadRow("its conversation has no turn of a user")
    return (*system, ("user", asked[0])), tuple(asked[1:])


def _read_turn(value: Any) -> Message:
    """`from` and `value` as in ShareGPT, or `role` and `content`. Turns of tools and others are not asked."""
    if not isinstance(value, dict):
        raise BadRow("a turn is no object")
    role, text = value.get("from", value.get("role")), value.get("value", value.get("content"))
    if not isinstance(role, str) or not isinstance(text, str):
        raise BadRow("a turn needs `from` and `value`, both text")
    return _SAID.get(role.lower(), role), text


def _read_limit(value: Mapping[str, Any]) -> int | None:
    for key in LIMITS:
        limit = value.get(key)
        if limit is None or limit == "":
            continue
        if isinstance(limit, str) and _NUMBER.fullmatch(limit):
            limit = int(limit)
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LONGEST:
            raise BadRow(f"its {key} is no whole number from 1 to {LONGEST}")
        return limit
    return None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _turn(row: Row, messages: tuple[Message, ...], turn: int, output_tokens: int) -> Prompt:
    def follow_up(answer: str) -> Prompt | None:
        said = (*messages, ("assistant", answer), ("user", row.later[turn]))
        return _turn(row, said, turn + 1, output_tokens)

    return Prompt(
        messages,
        output_tokens,
        variables=row.variables,
        turn=turn + 1 if row.later else None,
        follow_up=follow_up if turn < len(row.later) else None,
    )
