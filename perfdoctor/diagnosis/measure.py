"""Signals: named numbers derived from a run, each a documented function listed in its family's SIGNALS.

A function returns its number or raises NoValue with the reason; the decorator turns both into a Signal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from perfdoctor import registry
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.model import Signal

FAMILIES = "perfdoctor.diagnosis.signals"

Table = dict[str, Signal]


@dataclass(frozen=True, slots=True)
class Reading:
    """A number with how many observations it rests on and where it came from.

    `low` and `high`: between what the true one lies, where the number is that coarse.
    """

    value: float
    n: int | None = None
    source: str | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """A signal's definition. `page` is the function's docstring: unit, meaning of missing, cross-check."""

    name: str
    unit: str
    compute: Callable[[Observations], Reading | float]
    page: str

    def of(self, obs: Observations) -> float:
        """The bare number, for signals that build on others. Raises NoValue."""
        return self.reading(obs).value

    def reading(self, obs: Observations) -> Reading:
        """The number with where it came from, computed once for a run. Raises NoValue."""
        found = obs.once(self.name, lambda: self.compute(obs))
        return found if isinstance(found, Reading) else Reading(found)

    def __call__(self, obs: Observations) -> Signal:
        try:
            reading = self.reading(obs)
        except NoValue as error:
            return Signal(name=self.name, value=None, unit=self.unit, missing=error.reason)
        if not math.isfinite(reading.value):
            return Signal(name=self.name, value=None, unit=self.unit, missing="the number is not finite")
        return Signal(
            name=self.name,
            value=reading.value,
            unit=self.unit,
            n=reading.n,
            source=reading.source,
            low=reading.low,
            high=reading.high,
        )


def signal(name: str, unit: str) -> Callable[[Callable[[Observations], Reading | float]], Measure]:
    """Declare a function as the definition of a signal."""

    def declare(compute: Callable[[Observations], Reading | float]) -> Measure:
        return Measure(name, unit, compute, (compute.__doc__ or "").strip())

    return declare


def all_measures() -> tuple[Measure, ...]:
    """Every signal of every family, in the order of the files."""
    return tuple(m for _, family, _ in registry.discover(FAMILIES, "SIGNALS") for m in family)


def measure_all(obs: Observations) -> Table:
    """Every signal of the run by name."""
    return {m.name: m(obs) for m in all_measures()}
