"""The text of CUDA's out-of-memory error: what was asked for, what was free, what torch held unused.

Reads torch 1.x (`... already allocated; ... free; ... reserved in total by PyTorch`, before 1.5 `cached`),
torch 2 (`of which ... is free ... reserved by PyTorch but unallocated`), and their HIP and XPU twins, also
wrapped over lines by a log. If what is free and what torch holds unused together would have been enough,
the memory was there but not in one piece. It says nothing of the time before the error. A process with more
memory than its GPU is an unsigned number that fell below zero in torch, and is not read.

Make it: keep the whole message, not its first line alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from perfdoctor.evidence._metrics import OUT_OF_MEMORY
from perfdoctor.evidence._numbers import BINARY, number
from perfdoctor.evidence._reader import Reader, Reading, Skipped
from perfdoctor.evidence._source import Line, Source
from perfdoctor.model import Sample

MOST_LINES = 6  # over which a log may have wrapped the message
MOST_ERRORS = 1000
SIZE: Final = r"(?<![\d.,])([\d.,]{1,24} ?[KMGT]?i?B|[\d.,]{1,24} bytes)"  # bounded: no square of a long line
_START = re.compile(r"out of memory\. Tried to allocate", re.IGNORECASE)
PARTS = {
    "asked_bytes": re.compile(rf"Tried to allocate {SIZE}"),
    "total_bytes": re.compile(rf"total capac(?:i)?ty of {SIZE}|{SIZE} total capacity"),
    "free_bytes": re.compile(rf"of which {SIZE} is free|{SIZE} free"),
    "process_bytes": re.compile(rf"this process has {SIZE} memory in use"),
    "allocated_bytes": re.compile(
        rf"allocated memory {SIZE} is allocated by PyTorch|{SIZE} already allocated"
    ),
    "unallocated_bytes": re.compile(rf"{SIZE} is reserved by PyTorch but unallocated"),
    "reserved_bytes": re.compile(rf"{SIZE} reserved in total by PyTorch|{SIZE} cached"),
}
_GPU = re.compile(r"GPU (\d+)")


def read(source: Source) -> Reading | None:
    """A sample `torch.oom` of each message."""
    lines = source.lines
    starts = [i for i, line in enumerate(lines) if _START.search(line.text)]
    if not starts:
        return None
    found: list[Sample] = []
    claimed: set[int] = set()
    skipped: list[Skipped] = []
    for at, start in enumerate(starts[:MOST_ERRORS]):
        end = min(start + MOST_LINES, starts[at + 1] if at + 1 < len(starts) else len(lines))
        text, used = _message(lines[start:end])
        claimed.update(line.number for line in lines[start : start + used])
        values, why = _values(text)
        if why:
            skipped.append(Skipped(lines[start].number, why))
        gpu = _GPU.search(text)
        labels = {"device": gpu[1]} if gpu else {}
        found.append(Sample(at_s=float(at), probe="torch.oom", labels=labels, values=values))
    return Reading(
        samples=tuple(found), metrics=OUT_OF_MEMORY, lines=frozenset(claimed), skipped=tuple(skipped)
    )


def _message(lines: Sequence[Line]) -> tuple[str, int]:
    """The message and how many lines it takes: those that still add a number to it."""
    text = lines[0].text[:4000]
    used = 1
    for count, line in enumerate(lines[1:], 2):
        longer = f"{text.rstrip()} {line.text.strip()[:4000]}"
        if len(_found(longer)) > len(_found(text)):
            text, used = longer, count
    return text, used


def _found(text: str) -> dict[str, float]:
    start = _START.search(text)
    text = text[start.start() :] if start else text
    found = {}
    for name, pattern in PARTS.items():
        match = pattern.search(text)
        value = _bytes(next(g for g in match.groups() if g)) if match else None
        if value is not None:
            found[name] = value
    return found


def _bytes(text: str) -> float | None:
    digits, _, unit = text.partition(" ")
    value = number(digits)
    return None if value is None else value * BINARY.get(unit[:1].lower(), 1.0)


def _values(text: str) -> tuple[dict[str, float | None], str]:
    """In our names; what cannot be is None, and why."""
    found = _found(text)
    reserved, allocated = found.pop("reserved_bytes", None), found.get("allocated_bytes")
    if reserved is not None and allocated is not None:
        found["unallocated_bytes"] = reserved - allocated
    total = found.get("total_bytes")
    values: dict[str, float | None] = {**found}
    for name, value in found.items():
        if value < 0 or (name not in ("asked_bytes", "total_bytes") and total is not None and value > total):
            values[name] = None
    wrong = [name for name in found if values[name] is None]
    return values, f"{', '.join(wrong)}: more than the GPU has, or less than nothing" if wrong else ""


READER = Reader("CUDA out of memory", read)
