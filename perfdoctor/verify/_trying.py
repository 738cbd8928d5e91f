"""A trial while it is being made, and the steps that all of its parts take."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from perfdoctor import session, store
from perfdoctor.errors import TargetError
from perfdoctor.model import Load, Scenario, SideName, TriedSide, Verification
from perfdoctor.progress import Watch
from perfdoctor.stages import Orders
from perfdoctor.verify import _folder
from perfdoctor.verify._ask import Asked
from perfdoctor.verify._plan import Plan
from perfdoctor.verify._side import Bench, Side, died

SIDES: tuple[SideName, SideName] = ("before", "after")


@dataclass(slots=True)
class Known:
    """What a side said and was diagnosed as; several fixes may share a before side."""

    asked: Asked | None = None
    ledger: Path | None = None
    side: TriedSide | None = None


@dataclass(slots=True)
class Trying:
    plan: Plan
    watch: Watch
    folder: Path
    bench: Bench
    found: Verification
    known: dict[SideName, Known] = field(default_factory=dict)

    def update(self, **changes: object) -> None:
        self.found = msgspec.structs.replace(self.found, **changes)
        _folder.write(self.folder, self.found)


def side_up(trying: Trying, name: SideName) -> tuple[Side, bool]:
    """Up, and whether its process is new; says so where it had to be started."""
    had = getattr(trying.found, name)
    if not trying.bench.side(name).up and had.start_s is None:
        trying.watch.begin(f"Starting the {name} side", "first time up to a minute")
    side, started = trying.bench.use(name)
    if had.start_s != side.tried.start_s:
        trying.update(**{name: _kept(had, side.tried)})
    return side, started


def _kept(had: TriedSide, now: TriedSide) -> TriedSide:
    return msgspec.structs.replace(had, start_s=now.start_s, compile_s=now.compile_s)


def conduct_run(trying: Trying, side: Side, orders: Orders) -> None:
    """Its phases are not told: there are dozens. A Ctrl-C ends a run in order, and is meant for all."""
    with of_side(side):
        folder = session.conduct(orders, Watch(quiet=True))
    if store.open_run(folder).state == "interrupted":
        raise KeyboardInterrupt


@contextlib.contextmanager
def of_side(side: Side) -> Iterator[None]:
    """An error inside is told as that of the side, once it is known whether that is gone."""
    try:
        yield
    except TargetError as error:
        time.sleep(0.2)  # a process that closed its sockets may take this long to end
        raise died(side, error) from error


def scenario_of(trying: Trying, side: Side, load: Load) -> Scenario:
    base = trying.plan.scenario
    return msgspec.structs.replace(base, target=side.target(base.target), load=load)


def orders_of(trying: Trying, side: Side, load: Load, out: Path, command: str) -> Orders:
    return Orders(
        scenario=scenario_of(trying, side, load),
        command=command,
        argv=trying.plan.argv,
        out=out,
        secret=trying.plan.secret,
        probes=command == "diagnose",
        patient=side.patient,
    )
