"""Load time as disjoint rows: of a local model by its own stamps, of a running server by its log."""

from __future__ import annotations

import math
from collections.abc import Mapping

from perfdoctor.diagnosis.observations import NoValue, Observations, known
from perfdoctor.diagnosis.remainder import UNEXPLAINED, left_of
from perfdoctor.diagnosis.signals import load, start
from perfdoctor.model import LedgerRow


def load_rows(obs: Observations) -> tuple[LedgerRow, ...]:
    """From the first import to the first forward pass; of a server that ran already, what its log tells."""
    try:
        phases, whole = load.load_phases(obs), load.wall.of(obs)
    except NoValue:
        try:
            return _rows_of(*start.whole_and_parts(obs), "the server's log")
        except NoValue:
            return ()
    whole = max(whole, math.fsum(p.window.seconds for p in phases))
    parts: dict[str, float] = {}
    sources: dict[str, str] = {}
    for phase in phases:
        _add_phase(obs, phase, parts, sources)
    return _rows_of(whole, parts, sources)


def _rows_of(
    whole: float, parts: Mapping[str, float], sources: Mapping[str, str] | str
) -> tuple[LedgerRow, ...]:
    """Rows that sum to the whole; none of nothing."""
    whole = max(whole, math.fsum(parts.values()))
    if whole <= 0:
        return ()
    rows = {**parts, UNEXPLAINED: left_of(whole, parts)}
    by_row = dict.fromkeys(parts, sources) if isinstance(sources, str) else dict(sources)
    by_row[UNEXPLAINED] = "what no source accounts for"
    return tuple(
        LedgerRow(row=row, seconds=seconds, share=seconds / whole, source=by_row[row])
        for row, seconds in rows.items()
        if seconds > 0 or row == UNEXPLAINED
    )


_LOAD_ROWS = {
    "import": "import",
    "tokenizer": "deserialise",
    "weights": "deserialise",
    "to_device": "host_to_device",
    "first_forward": "first_forward",
}


def _add_phase(
    obs: Observations, phase: load.LoadPhase, parts: dict[str, float], sources: dict[str, str]
) -> None:
    """Storage wait leaves each phase first, but not the imports. Where it could not be seen, reading weights
    is believed only as far as the process used a CPU."""
    row, seconds = _LOAD_ROWS.get(phase.name, UNEXPLAINED), phase.window.seconds
    source = "the child's own stamps"
    if row == "import":
        parts[row], sources[row] = parts.get(row, 0.0) + seconds, source
        return
    try:
        wait = load.storage_wait(obs, phase.window)
        parts["storage_wait"] = parts.get("storage_wait", 0.0) + wait.value
        sources["storage_wait"] = wait.source or sources.get("storage_wait", "")
        seconds -= wait.value
    except NoValue:
        if row == "deserialise":
            used = known(lambda: phase.window.change("cpu", "oncpu_s").amount)
            seconds, source = min(seconds, used or 0.0), "CPU time of the process"
    if row != UNEXPLAINED:
        parts[row] = parts.get(row, 0.0) + seconds
        sources.setdefault(row, source)
