"""One JSON object a line: `prompt` or `text`, `messages`, or `conversations`; `max_tokens` for its answer.

Every member is a variable for the templates of `--api http`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from perfdoctor.loadgen.prompts._file_source import FileSource
from perfdoctor.loadgen.prompts._files import wrong_row
from perfdoctor.model import Prompts


def split_lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """(`line N`, its value). Lines end in LF or CRLF only: U+2028 and its like may stand inside a text."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield f"line {number}", msgspec.json.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise wrong_row(path, f"line {number}", str(error) or "nested too deep") from error


def _source(prompts: Prompts, seed: int, run: int) -> FileSource:
    return FileSource(prompts, seed, split_lines)


SOURCE = _source
