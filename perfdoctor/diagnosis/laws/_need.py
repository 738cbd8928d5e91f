"""A number a law rests on."""

from __future__ import annotations

from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue


def need(table: Table, name: str) -> float:
    """The signal's value; NoValue without one."""
    value = table[name].value
    if value is None:
        raise NoValue(name)
    return value
