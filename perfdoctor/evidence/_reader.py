"""What a reader is, and what it makes of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from perfdoctor.evidence._source import Source
from perfdoctor.model import Metric, Sample


@dataclass(frozen=True, slots=True)
class Told:
    """A number that the tool had already derived, under the name of our signal (`ttft.steady.p50`).

    `where` names tool and line. Units are ours: seconds, bytes, shares 0-1.
    """

    name: str
    value: float
    unit: str
    where: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that is the tool's own and could not be read, with the reason; never silently dropped."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What one reader found in one file.

    `samples` carry the probes' names and metrics; their `at_s` counts from the file's first instant, and
    `clock` says how it was known. `wall_zero` is that instant as ISO 8601 where the file tells it, so that
    files of one host share a clock. `facts` are what the text says about the set-up, under the names of
    `--fact`. `lines` are the numbers of all lines that this reader claims, `skipped` those among them that
    it could not read. Missing (`N/A`, `-`, `[Not Supported]`, `-nan`) is None or absent, never zero.
    """

    samples: tuple[Sample, ...] = ()
    told: tuple[Told, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[Metric, ...] = ()
    lines: frozenset[int] = frozenset()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    stacks: str = ""  # folded stacks, as a probe would have written them
    clock: str = "none"  # stamps, interval (assumed or printed) or none: one instant
    wall_zero: str | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """`read` gives None where nothing in the file is this tool's. It must be pure, and bounded in time and
    memory for any bytes: no code of the file is ever run, no archive expanded beyond its limit."""

    title: str
    read: Callable[[Source], Reading | None]
