"""Runs the levels of a sweep, one after the other."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from perfdoctor import __version__, disk, folders, interrupts, session, units
from perfdoctor.errors import PerfdoctorError
from perfdoctor.model import Scenario, Sweep, SweepLevel
from perfdoctor.progress import Watch
from perfdoctor.redact import clean_url
from perfdoctor.stages import Orders
from perfdoctor.sweep import _rows
from perfdoctor.sweep._decide import requests_needed
from perfdoctor.sweep._folder import settled, write
from perfdoctor.sweep._loads import load_of, times_longer
from perfdoctor.sweep._steps import ENOUGH, Plan, Step, named, next_step

REST_S = 1.0  # between levels
MOST_REST_S = 30.0  # after one that left requests open: some servers go on with what nobody waits for
INTERRUPTED = "interrupted"


@dataclass(slots=True)
class _Sweeping:
    orders: Orders
    plan: Plan
    warms_up: bool
    watch: Watch
    folder: Path
    found: Sweep


def conduct(orders: Orders, plan: Plan, warms_up: bool, watch: Watch) -> tuple[Path, Sweep]:
    """Run the levels. One that cannot be driven is the last row; where it is the first, its error is raised.

    `warms_up`: no warm-up was asked for, so each level gets its own.
    """
    there = orders.out is not None and orders.out.exists()
    folder = folders.given(orders.out) if orders.out else folders.fresh("sweep")
    sweeping = _Sweeping(orders, plan, warms_up, watch, folder, _opening(orders, plan, folder))
    ended = INTERRUPTED
    try:
        with disk.claim(folder), contextlib.suppress(KeyboardInterrupt):
            ended = _run_levels(sweeping)
    finally:
        with interrupts.shield():
            found = settled(sweeping.found, folder)
            state = INTERRUPTED if ended == INTERRUPTED else "complete"
            found = msgspec.structs.replace(found, ended=ended, state=state)
            _close(folder, found, there)
    if not found.levels:
        raise KeyboardInterrupt
    return folder, found


def _close(folder: Path, found: Sweep, there: bool) -> None:
    """Leaves nothing behind of a sweep without a run, as when no server answers."""
    if found.levels:
        write(folder, found)
        return
    (folder / folders.SWEEP).unlink(missing_ok=True)
    if not there:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _opening(orders: Orders, plan: Plan, folder: Path) -> Sweep:
    target, load = orders.scenario.target, orders.scenario.load
    repeats = (
        "each level sends the same prompts, those of a file: what the server remembers of them it may use"
    )
    return Sweep(
        sweep=folder.name,
        perfdoctor=__version__,
        argv=orders.argv,
        target=clean_url(target.endpoint) if target.endpoint else target.model or "",
        over=plan.over,
        slo_text=load.slo,
        notes=(repeats,) if load.prompts.file else (),
    )


def _run_levels(sweeping: _Sweeping) -> str:
    """Why it ended."""
    while isinstance(step := next_step(sweeping.plan, sweeping.found.levels), Step):
        if sweeping.found.levels:
            _rest(sweeping.found.levels[-1], sweeping.watch)
        _run_level(sweeping, step)
    return step.reason


def _run_level(sweeping: _Sweeping, step: Step) -> None:
    """Adds a row, which sweep.json holds from its beginning."""
    before, folder, slo = sweeping.found.levels, sweeping.folder, sweeping.found.slo_text
    mark = "c" if sweeping.plan.over == "concurrency" else "r"
    row = SweepLevel(level=step.level, run=f"{len(before) + 1:02}-{mark}{step.level:g}", why=step.why)
    orders = dataclasses.replace(
        sweeping.orders, scenario=_scenario(sweeping, step), command="load-test", out=folder / row.run
    )
    old = tuple(msgspec.structs.replace(r, repeated=r.repeated or r.level == step.level) for r in before)
    sweeping.found = msgspec.structs.replace(sweeping.found, levels=(*old, row))
    write(folder, sweeping.found)
    try:
        session.conduct(orders, sweeping.watch)
        row = _rows.measured(row, folder, slo)
    except PerfdoctorError as error:
        row = _rows.failed(row, error)
        if not before:
            raise
    sweeping.found = msgspec.structs.replace(sweeping.found, levels=(*old, row))
    write(folder, sweeping.found)
    sweeping.watch.note(_told(sweeping.plan, row))


def _scenario(sweeping: _Sweeping, step: Step) -> Scenario:
    """The orders with the load of this level."""
    scenario, rows, slo = sweeping.orders.scenario, sweeping.found.levels, sweeping.found.slo_text
    same = next((row for row in reversed(rows) if row.level == step.level), None)
    times = times_longer(max(ENOUGH, requests_needed(slo) if slo else 1), same) if same else 1.0
    before = same or (rows[-1] if rows else None)
    load = load_of(scenario.load, sweeping.plan.over, step.level, before, sweeping.warms_up, times)
    return msgspec.structs.replace(scenario, load=load)


def _rest(before: SweepLevel, watch: Watch) -> None:
    """Until the server is idle: all answers have come, unless the load was cut off."""
    seconds = REST_S
    if before.cut_off:
        seconds = min(MOST_REST_S, max(REST_S, before.e2e_p95_s or before.e2e_p50_s or MOST_REST_S))
    watch.begin("Letting the server come to rest", f"{seconds:.0f} s")
    time.sleep(seconds)


def _told(plan: Plan, row: SweepLevel) -> str:
    """A level in a line, for whoever is watching."""
    name = named(plan.over, row.level)
    if row.error is not None:
        return f"{name}: {row.error}"
    parts = [f"{units.number(row.requests_per_s)} requests/s", f"TTFT p50 {units.seconds(row.ttft_p50_s)}"]
    if row.ttft_p50_s is None:
        parts[1:] = [f"end to end p50 {units.seconds(row.e2e_p50_s)}"]
    if row.failed:
        parts.append(f"{row.failed} of {row.requests} failed")
    if row.slo:
        parts.append(f"SLO {row.slo.replace('_', ' ')}")
    return f"{name}: {', '.join(parts)}"
