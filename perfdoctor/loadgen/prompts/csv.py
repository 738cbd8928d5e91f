"""A table with a header row: column `prompt` or `text`, perhaps `max_tokens`; all columns are variables.

Separated by commas, semicolons or tabs, whichever parts the header best; quoted as RFC 4180 says.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.prompts._file_source import FileSource
from perfdoctor.loadgen.prompts._files import MOST_BYTES, wrong_row
from perfdoctor.model import Prompts


def _split(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    limit = csv.field_size_limit(MOST_BYTES)  # the module's own, of 128 KiB, is shorter than long prompts
    try:
        yield from _split_rows(path, text)
    finally:
        csv.field_size_limit(limit)


def _split_rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    try:
        header = [name.strip() for name in next(row for row in reader if row)]
        _check(path, header)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                why = f"it has {len(cells)} cells, and the header {len(header)}"
                raise wrong_row(path, f"line {reader.line_num}", why)
            yield f"line {reader.line_num}", dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise wrong_row(path, f"line {reader.line_num}", str(error)) from error


def _delimiter(text: str) -> str:
    first = text.lstrip().partition("\n")[0]
    return max(",;\t", key=first.count)


def _check(path: Path, header: list[str]) -> None:
    if len(set(header)) < len(header) or "" in header:
        raise UsageError(
            f"the header of {path} names a column twice, or not at all",
            "Its first line must hold the names of the columns.",
            "prompt,max_tokens",
        )


def _source(prompts: Prompts, seed: int, run: int) -> FileSource:
    return FileSource(prompts, seed, _split)


SOURCE = _source
