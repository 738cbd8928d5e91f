"""Replay of recorded load: one JSON object a line with the instant it was sent and what it said.

Instants: `at_s` in seconds, or `timestamp` in seconds; with `input_length` beside it (Mooncake's published
traces) a `timestamp` is in milliseconds. The earliest becomes 0.

Contents: whatever a line of a JSONL file of prompts may have, or `input_length` alone. Then the text is made
up, and `hash_ids` say what it shares with others: each stands for a block of 512 tokens, and the same id is
the same text, so that a prefix cache finds as much as it found when the trace was recorded.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.lengths import LONGEST, Lengths, parse_lengths
from perfdoctor.loadgen.prompts._files import read_text, wrong_row
from perfdoctor.loadgen.prompts._prompt import Prompt, Source
from perfdoctor.loadgen.prompts._rows import BadRow, Row, read_row
from perfdoctor.loadgen.prompts._words import Ruler
from perfdoctor.loadgen.prompts.jsonl import split_lines
from perfdoctor.loadgen.prompts.synthetic import make_prompt
from perfdoctor.loadgen.tokens import load_counter
from perfdoctor.model import Prompts

BLOCK_TOKENS = 512  # Mooncake's block size, fixed by its traces
LATEST_S = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Trace:
    """`due_s` ascends from 0; request n of the source is the one due at `due_s[n - 1]`."""

    due_s: tuple[float, ...]
    source: Source
    notes: tuple[str, ...] = ()  # what a reader of the run must know


@dataclass(frozen=True, slots=True)
class _Shape:
    """A prompt of which only the length is known, and what it shares."""

    tokens: int
    blocks: tuple[int, ...]
    row: Row  # its output tokens and variables


def read_trace(path: Path, prompts: Prompts = Prompts(), seed: int = 0, run: int = 0) -> Trace:  # noqa: B008
    """UsageError with the line of the first bad row."""
    rows: list[tuple[float, Row | _Shape]] = []
    for place, value in split_lines(path, read_text(path)):
        try:
            if not isinstance(value, dict):
                raise BadRow("it is no object")
            rows.append((_at_s(value), _content(value)))
        except (BadRow, RecursionError) as error:
            raise _wrong(path, place, str(error)) from error
    if not rows:
        raise UsageError(f"{path} holds no request", "It has no row.", "give one JSON object a line")
    ordered = sorted(rows, key=lambda row: row[0])
    start_s = ordered[0][0]
    due_s = tuple(at_s - start_s for at_s, _ in ordered)
    if due_s[-1] > LATEST_S:
        raise UsageError(
            f"{path} spans {due_s[-1] / 86400:.0f} days",
            "Its instants are perhaps milliseconds: only rows with input_length are read so.",
            "write seconds as at_s",
        )
    source = _Recorded([content for _, content in ordered], prompts, seed, run)
    notes = (
        ()
        if rows == ordered
        else (f"the rows of {path.name} were not in the order of time; they were sorted",)
    )
    return Trace(due_s, source, notes)


class _Recorded:
    """The requests of a trace, in the order of time."""

    def __init__(self, contents: Sequence[Row | _Shape], prompts: Prompts, seed: int, run: int) -> None:
        self._contents, self._seed, self._run = contents, seed, run
        self._output: Lengths = parse_lengths(prompts.output_tokens, "--output-tokens")
        self._ruler = Ruler(load_counter(prompts.tokenizer)) if prompts.tokenizer else Ruler()
        rows = [_row_of(content) for content in contents]
        self.count: int | None = len(rows)
        self.variables = tuple(sorted(set.intersection(*(set(row.variables) for row in rows))))
        self.speaks = True

    def prompt(self, request: int) -> Prompt:
        content = self._contents[(request - 1) % len(self._contents)]
        row = _row_of(content)
        if isinstance(content, _Shape):
            row = Row((("user", self._text(request, content)),), (), row.output_tokens, row.variables)
        return row.prompt(row.output_tokens or self._output.draw(random.Random(f"{self._seed} {request}")))

    def _text(self, request: int, shape: _Shape) -> str:
        """Blocks of another run are other blocks, or that run would have filled the cache."""
        if not shape.blocks:
            return make_prompt(self._seed, request, shape.tokens, self._run, self._ruler)
        parts, left = [], shape.tokens
        for block in shape.blocks:
            rng = random.Random(f"{self._seed} {self._run} {block}")
            text = f"Part {rng.getrandbits(64):016x}"
            text = f"{text} {self._ruler.body(rng, BLOCK_TOKENS - self._ruler.length(text))}"
            parts.append(text if left >= BLOCK_TOKENS else self._ruler.cut(text, left))
            left -= BLOCK_TOKENS
        return " ".join(parts)


def _row_of(content: Row | _Shape) -> Row:
    return content.row if isinstance(content, _Shape) else content


def _at_s(value: Mapping[str, Any]) -> float:
    recorded = "input_length" in value
    name = "at_s" if "at_s" in value else "timestamp"
    at = value.get(name)
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not math.isfinite(at):
        raise BadRow("it has no at_s, and no timestamp that is a number")
    if at < 0:
        raise BadRow(f"its {name} is below 0")
    return at / 1e3 if recorded and name == "timestamp" else float(at)


def _content(value: Mapping[str, Any]) -> Row | _Shape:
    row = read_row(value)
    if row.messages:
        return row
    tokens, blocks = value.get("input_length"), value.get("hash_ids") or ()
    if isinstance(tokens, bool) or not isinstance(tokens, int) or not 1 <= tokens <= LONGEST:
        raise BadRow(f"it has neither a prompt nor an input_length from 1 to {LONGEST}")
    if not isinstance(blocks, (list, tuple)) or not all(isinstance(block, int) for block in blocks):
        raise BadRow("its hash_ids are no list of whole numbers")
    if blocks and len(blocks) != math.ceil(tokens / BLOCK_TOKENS):
        raise BadRow(f"{tokens} tokens are not {len(blocks)} blocks of {BLOCK_TOKENS}")
    return _Shape(tokens, tuple(blocks), row)


def _wrong(path: Path, place: str, why: str) -> UsageError:
    found = wrong_row(path, place, why)
    return UsageError(
        found.what.replace("is no prompt", "cannot be replayed"),
        "A row needs an instant, and a prompt or an input_length.",
        'for example {"at_s": 1.5, "prompt": "Hello", "max_tokens": 32}',
    )
