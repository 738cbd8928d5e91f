"""What the laws share: a number that one rests on, and how far it may be off."""

from __future__ import annotations

from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue

ROUNDING = 1.05


def need(table: Table, name: str) -> float:
    """The signal's value; NoValue without one."""
    value = table[name].value
    if value is None:
        raise NoValue(name)
    return value
