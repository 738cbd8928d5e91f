"""What every report is made from, and what a report format is.

A report never reads a run folder and never judges: all it may use arrives in one Bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from perfdoctor.model import Diagnosis, LoadSummary, RequestRecord, RunFacts, Sample


@dataclass(frozen=True, slots=True)
class Bundle:
    """A run with its judgement. `diagnosis` None: not judged; `summary` None: no load was driven."""

    diagnosis: Diagnosis | None
    summary: LoadSummary | None
    facts: RunFacts
    requests: tuple[RequestRecord, ...] = ()
    samples: tuple[Sample, ...] = ()
    stacks: str = ""  # folded: `frame;frame count` a line


@dataclass(frozen=True, slots=True)
class Report:
    """A format: the file name's suffix and the pure function that writes the text.

    `pieces` is the same text bit by bit, where it grows with the requests: a million rows are 1 GB.
    """

    suffix: str
    render: Callable[[Bundle], str]
    pieces: Callable[[Bundle], Iterator[str]] | None = None
