"""One pasted file: its bytes, its lines with their numbers, whatever its encoding, colours or line ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MOST_BYTES = 64 * 2**20  # of text read as lines; what lies beyond is named as left out
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True, slots=True)
class Line:
    """`number` counts from 1, as an editor shows it. `text` has no colour codes and no line end."""

    number: int
    text: str


@dataclass(frozen=True)
class Source:
    """A file on disk. Readers of lines share `lines`; readers of whole formats open `path` themselves."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def head(self) -> bytes:
        """The first 4 KiB: enough to tell a database, an archive or a pickle from text."""
        with self.path.open("rb") as stream:
            return stream.read(4096)

    @property
    def is_text(self) -> bool:
        return any(self.head.startswith(bom) for bom, _ in _BOMS) or b"\0" not in self.head

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Every line of the first 64 MiB; none of a file that is no text."""
        return tuple(self._read_lines()) if self.is_text else ()

    def _read_lines(self) -> Iterator[Line]:
        with self.path.open("rb") as stream:
            raw = stream.read(MOST_BYTES)
        encoding = next((name for bom, name in _BOMS if raw.startswith(bom)), "utf-8")
        text = raw.decode(encoding, "replace")
        for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
            yield Line(number, _ANSI.sub("", line))
