"""One JSON list, as ShareGPT's files are: conversations of turns with `from` and `value`.

Only what the humans said is sent; the history of a later turn holds the server's own answers. Any member
that a line of JSONL may have is understood here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.prompts._file_source import FileSource
from perfdoctor.loadgen.prompts._files import wrong_row
from perfdoctor.model import Prompts


def _split(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        items = msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UsageError(
            f"{path} is no JSON list: {error}",
            "A ShareGPT file is one list of conversations.",
            "give one, or a file with one JSON object a line",
        ) from error
    for number, item in enumerate(items, start=1):
        try:
            value = msgspec.json.decode(item)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise wrong_row(path, f"item {number}", str(error) or "nested too deep") from error
        if not _is_silent(value):
            yield f"item {number}", value


def _is_silent(value: Any) -> bool:
    """A conversation in which no one asks anything: the well-known files have hundreds of them."""
    turns = value.get("conversations") if isinstance(value, dict) else None
    if not isinstance(turns, list):
        return False
    return not any(
        isinstance(turn, dict) and turn.get("from", turn.get("role")) in ("human", "user") for turn in turns
    )


def _source(prompts: Prompts, seed: int, run: int) -> FileSource:
    return FileSource(prompts, seed, _split)


SOURCE = _source
