"""Prompts from the rows of a file, in its order, and from its beginning again when more are asked for."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.lengths import parse_lengths
from perfdoctor.loadgen.prompts._files import read_text, wrong_row
from perfdoctor.loadgen.prompts._prompt import Prompt
from perfdoctor.loadgen.prompts._rows import BadRow, Row, read_row
from perfdoctor.model import Prompts

Values = Iterable[tuple[str, Any]]  # (`line 3`, what stands there)


class FileSource:
    """`split` parts a file's text into its rows' values, or raises wrong_row."""

    def __init__(self, prompts: Prompts, seed: int, split: Callable[[Path, str], Values]) -> None:
        if prompts.file is None:
            raise UsageError("no file of prompts is named", "", "--prompts FILE")
        path = Path(prompts.file)
        self._rows = _read_rows(path, split(path, read_text(path)))
        self._seed = seed
        self._output = parse_lengths(prompts.output_tokens, "--output-tokens")
        self.count: int | None = len(self._rows)
        self.speaks = all(row.messages for row in self._rows)
        self.variables = tuple(sorted(set.intersection(*(set(row.variables) for row in self._rows))))

    def prompt(self, request: int) -> Prompt:
        row = self._rows[(request - 1) % len(self._rows)]
        tokens = row.output_tokens or self._output.draw(random.Random(f"{self._seed} {request}"))
        return row.prompt(tokens)


def _read_rows(path: Path, values: Values) -> tuple[Row, ...]:
    rows = []
    for place, value in values:
        try:
            if not isinstance(value, dict):
                raise BadRow("it is no object")
            rows.append(read_row(value))
        except (BadRow, RecursionError) as error:
            raise wrong_row(path, place, str(error)) from error
    if not rows:
        raise UsageError(f"{path} holds no prompt", "It has no row.", "give a file with one prompt a line")
    return tuple(rows)
