"""What a probe is: its metrics, its rate, and a reader that is opened once and read at every tick.

A probe file holds pure parsers, a reader and the constant PROBE; the sampler does the rest (threads,
schedule, stamps, errors). A reader reports what it cannot read as None and says why in `gaps`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from perfdoctor.model import Metric, ProbeStatus
from perfdoctor.probes._subject import Subject


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of one labelled thing at one tick; the sampler turns it into a Sample."""

    values: Mapping[str, float | None]
    labels: Mapping[str, str] = field(default_factory=dict)
    probe: str | None = None  # a family of its own such as `cpu.thread`; None: the probe's name
    why: str | None = None  # a value is None this once
    stacks: str = ""  # folded stacks
    cost_s: float = 0.0  # CPU time spent by a helper process


@dataclass(frozen=True, slots=True)
class Gap:
    """A metric that stays None on this machine, with the reason and what would enable it."""

    metric: str
    why: str
    enable: str | None = None


class Unavailable(Exception):
    """The probe cannot work here; it ends with this status. Raised by `open` or `read`."""

    def __init__(self, status: ProbeStatus, why: str, enable: str | None = None) -> None:
        super().__init__(why)
        self.status, self.why, self.enable = status, why, enable


class NotYet(Unavailable):
    """Nothing to read so far. No error: the probe asks again, and ends with this status if it stays so."""


class Reader(Protocol):
    @property
    def gaps(self) -> Sequence[Gap]: ...

    def read(self) -> Sequence[Reading]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Probe:
    """`max_share` is the CPU it may use, as a share of one core: the sampler thins it out above that."""

    name: str
    rate_hz: float
    max_share: float
    metrics: tuple[Metric, ...]
    open: Callable[[Subject, threading.Event], Reader]  # the event is set when the run ends
    host: bool = True  # reads this machine, so it says nothing about a server elsewhere
    max_hz: float = 10.0


Rows = Mapping[str, tuple[str, str]]  # name -> (unit, meaning)


def gauges(probe: str, cross_check: str, rows: Rows) -> tuple[Metric, ...]:
    """Metrics whose number one command can confirm."""
    return tuple(
        Metric(probe=probe, name=name, unit=unit, meaning=meaning, cross_check=cross_check)
        for name, (unit, meaning) in rows.items()
    )


def counters(probe: str, cross_check: str, rows: Rows) -> tuple[Metric, ...]:
    """Cumulative since an unspecified start: only differences mean something."""
    return tuple(
        Metric(probe=probe, name=name, unit=unit, meaning=meaning, kind="counter", cross_check=cross_check)
        for name, (unit, meaning) in rows.items()
    )
