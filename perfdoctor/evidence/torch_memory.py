"""torch.cuda.memory_summary(): what the caching allocator holds, and how much of it is in use.

Reads the table of torch 1.4 to 2.13, abbreviated or not, of one GPU or several. Reserved minus allocated is
what the cache keeps for later; non-releasable memory is the part of it that lies in pieces beside blocks in
use and can be given to nobody else: that is fragmentation. Retries count allocations that had to flush the
cache first. The counts are since the process began, so the table says how often and not how lately. An
engine that allocates its KV cache at once shows all of it as allocated, full or empty.

Make it: `print(torch.cuda.memory_summary())` in the process, under load.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from perfdoctor.evidence._metrics import ALLOCATOR
from perfdoctor.evidence._numbers import BINARY, number
from perfdoctor.evidence._reader import Reader, Reading, Skipped
from perfdoctor.evidence._source import Line, Source
from perfdoctor.model import Sample

ROWS = {
    "Allocated memory": "allocated_bytes",
    "Active memory": "active_bytes",
    "GPU reserved memory": "reserved_bytes",
    "Non-releasable memory": "inactive_split_bytes",
}
_TITLE = re.compile(r"PyTorch (?:CUDA|XPU) memory summary, device ID (\d+)")
_COUNTS = re.compile(r"OOMs:\s*(\d+)\s*\|\s*\w+ retries:\s*(\d+)")
_SIZE = re.compile(r"([\d.,]+)\s*([KMGTP]?)i?B")
_TABLE = re.compile(r"^\s*\|.*\|\s*$")


@dataclass(slots=True)
class _Table:
    device: str
    values: dict[str, float | None] = field(default_factory=dict)


def read(source: Source) -> Reading | None:
    """A sample `torch` of each table; tables of one GPU follow each other at no known pace."""
    tables: list[_Table] = []
    claimed: set[int] = set()
    skipped: list[Skipped] = []
    for line in source.lines:
        if not _TABLE.match(line.text):
            continue
        if match := _TITLE.search(line.text):
            tables.append(_Table(match[1]))
        if tables:
            claimed.add(line.number)
            _row(line, tables[-1], skipped)
    tables = [t for t in tables if t.values]
    if not tables:
        return None
    return Reading(
        samples=tuple(_samples(tables)),
        metrics=ALLOCATOR,
        lines=frozenset(claimed),
        skipped=tuple(skipped),
    )


def _row(line: Line, table: _Table, skipped: list[Skipped]) -> None:
    if match := _COUNTS.search(line.text):
        table.values |= {"ooms_total": float(match[1]), "retries_total": float(match[2])}
        return
    cells = [cell.strip() for cell in line.text.strip().strip("|").split("|")]
    if cells[0] not in ROWS:
        return
    value = _bytes(cells[1]) if len(cells) > 1 else None
    if value is None:
        skipped.append(Skipped(line.number, f"no size under current usage of {cells[0]}"))
        return
    table.values[ROWS[cells[0]]] = value


def _bytes(text: str) -> float | None:
    """Powers of 1024 under either name: torch before 1.11 divides by 1024 and writes MB."""
    match = _SIZE.fullmatch(text)
    value = number(match[1]) if match else None
    if match is None or value is None:
        return None
    return value * BINARY.get(match[2].lower(), 1.0)


def _samples(tables: Sequence[_Table]) -> list[Sample]:
    seen: dict[str, int] = {}
    found = []
    for table in tables:
        at = seen[table.device] = seen.get(table.device, -1) + 1
        found.append(
            Sample(at_s=float(at), probe="torch", labels={"device": table.device}, values=table.values)
        )
    return found


READER = Reader("torch memory summary", read)
