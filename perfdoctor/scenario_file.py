"""Reads a scenario file strictly: an error names the file and line, the key, its value, and what is allowed.

Records ignore unknown keys, since a newer version may have written them. A file that a person wrote is read
the other way: an unknown key is a misspelt one.
"""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from perfdoctor.errors import UsageError
from perfdoctor.model import Scenario

Keys = tuple[str, ...]
LARGEST = 2**20  # bytes; a scenario has one or two thousand
_TABLE = re.compile(r"\s*\[([^\[\]]+)\]")
_KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")
_PLACE = re.compile(r" - at `\$\.?(.*?)(?:\[.*)?`$")
_KINDS = {
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    bool: "true or false",
    dict: "a table",
    tuple: "a list of [second, rate] pairs",
}


def read_scenario(path: Path) -> Scenario:
    """UsageError for a file that cannot be read or holds anything but a scenario."""
    text = _read(path)
    try:
        values = msgspec.toml.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UsageError(
            f"{path} is no TOML: {error}", "", "write texts in quotes, and one `key = value` a line"
        ) from error
    for keys, kind in _unknown(values, Scenario, ()):
        raise _unknown_key(path, text, keys, kind)
    try:
        return msgspec.convert(values, Scenario)
    except msgspec.ValidationError as error:
        raise _wrong_value(path, text, values, str(error)) from error


def place(path: Path, text: str, keys: Keys) -> str:
    """`file.toml, line 7`: where a key stands, or the table around it."""
    line = line_of(text, keys)
    return f"{path}, line {line}" if line else str(path)


def line_of(text: str, keys: Keys) -> int | None:
    """From 1. Of a key within an inline table, the line of that table; None where nothing of it is found."""
    table: Keys = ()
    best, found = 0, None
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            here = table = _split(header[1])
        elif key := _KEY.match(line):
            here = (*table, *_split(key[1]))
        else:
            continue
        shared = min(len(here), len(keys))  # a header may name more: [a.b] is where a begins
        if shared > best and here[:shared] == keys[:shared]:
            best, found = shared, number
    return found


def _split(dotted: str) -> Keys:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _read(path: Path) -> str:
    try:
        if path.is_file() and path.stat().st_size > LARGEST:
            raise UsageError(f"{path} is larger than a scenario can be", "", "see scenarios/README.md")
        return path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "", "check the path") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text", "A scenario is TOML in UTF-8.", "check the path") from error


def _unknown(values: Any, kind: type, above: Keys) -> Iterator[tuple[Keys, type]]:
    """Keys that the record of that kind has not, with the kind."""
    if not isinstance(values, dict):
        return
    hints = typing.get_type_hints(kind)
    for name, value in values.items():
        if name not in hints:
            yield (*above, name), kind
        elif isinstance(hints[name], type) and issubclass(hints[name], msgspec.Struct):
            yield from _unknown(value, hints[name], (*above, name))


def _unknown_key(path: Path, text: str, keys: Keys, kind: type) -> UsageError:
    known = typing.get_type_hints(kind)
    near = difflib.get_close_matches(keys[-1], known, 1, 0.6)
    table = f"[{'.'.join(keys[:-1])}]" if keys[:-1] else "a scenario"
    return UsageError(
        f"{place(path, text, keys)}: {table} has no key `{keys[-1]}`",
        f"Known are: {', '.join(known)}.",
        f"write `{near[0]}`" if near else "leave it out",
    )


def _wrong_value(path: Path, text: str, values: Any, said: str) -> UsageError:
    found = _PLACE.search(said)
    keys = _split(found[1]) if found and found[1] else ()
    value, hint = values, Scenario
    for key in keys:
        value, hint = value[key], typing.get_type_hints(hint).get(key, Any)
    return UsageError(
        f"{place(path, text, keys)}: `{'.'.join(keys)}` cannot be {_shown(value)}",
        "",
        f"give it {_allowed(hint, keys)}",
    )


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _allowed(hint: Any, keys: Sequence[str]) -> str:
    """In words: `one of: closed, poisson`, `a number, in seconds`."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    words = []
    for kind in (kind for kind in kinds if kind is not type(None)):
        if typing.get_origin(kind) is Literal:
            words.append("one of: " + ", ".join(typing.get_args(kind)))
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            words.append("a table")
        else:
            words.append(_KINDS.get(typing.get_origin(kind) or kind, "another kind of value"))
    seconds = ", in seconds" if keys and keys[-1].endswith("_s") else ""
    return " or ".join(words) + seconds
