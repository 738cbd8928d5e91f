"""What a law is, and what all of them share: a number that one rests on, and how far it may be off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.model import Violation

ROUNDING = 1.05


@dataclass(frozen=True, slots=True)
class Law:
    """`test` gives what is impossible, or None where the law holds; NoValue where nothing here tests it."""

    name: str
    test: Callable[[Observations, Table], Violation | None]

    @property
    def says(self) -> str:
        return (self.test.__doc__ or "").partition("\n")[0].rstrip(".")


def need(table: Table, name: str) -> float:
    """The signal's value; NoValue without one, with its own reason."""
    signal = table[name]
    if signal.value is None:
        raise NoValue(f"{name} is missing: {signal.missing}")
    return signal.value
