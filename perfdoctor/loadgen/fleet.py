"""Chooses how many processes drive a load: the one call site of stages.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from perfdoctor.clock import Clock
from perfdoctor.errors import PerfdoctorError, UsageError
from perfdoctor.loadgen import fleet_size
from perfdoctor.loadgen.driver import Driver
from perfdoctor.loadgen.fleet_driver import Fleet
from perfdoctor.loadgen.stage import Snapshot, Stage
from perfdoctor.model import ClientFacts, Load, Phase, RequestRecord, Target

Emit = Callable[[RequestRecord], None]
_SHARED_CLOCKS = {"clock_gettime(CLOCK_MONOTONIC)", "mach_absolute_time()"}


class Driving(Protocol):
    """What stages.py needs of a driver, of one process or of several."""

    @property
    def aborted(self) -> PerfdoctorError | None: ...
    @property
    def stopped(self) -> str | None: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def over(self) -> bool: ...
    async def __aenter__(self) -> Driving: ...
    async def __aexit__(self, *_: Any) -> None: ...
    async def run_stage(self, stage: Stage) -> Phase: ...
    def request_stop(self) -> None: ...
    def snapshot(self) -> Snapshot: ...
    def client_facts(self) -> ClientFacts: ...


def make_driver(
    target: Target, load: Load, clock: Clock, emit: Emit, secret: str | None, workers: int | None
) -> Driving:
    """`workers` None: as many as the pace asks for once it is known, in this process until then."""
    if workers and load.arrival != "closed" and load.max_in_flight:
        workers = min(workers, load.max_in_flight)  # a process without a slot of its own could send nothing
    spare = fleet_size.cores() - 1
    if workers is None and (spare < 2 or not _clock_is_shared()):
        workers = 1
    if workers == 1:
        return Driver(target, load, clock, emit, secret)
    if not _clock_is_shared():
        raise UsageError(
            "this system cannot drive a load from several processes",
            "Their stamps would be of different clocks.",
            "leave --workers out, or set it to 1",
        )
    if workers is None:
        return Growing(target, load, clock, emit, secret, spare + 1)
    return Fleet(target, load, clock, emit, secret, workers)


def _clock_is_shared() -> bool:
    """Whether stamps of different processes of this host are on one axis."""
    return time.get_clock_info("perf_counter").implementation in _SHARED_CLOCKS


class Growing:
    """A Driver in this process for what one user at a time does, then as many processes as the load needs.

    `cores`: how many CPUs there are for all of them and for everything else.
    """

    def __init__(
        self, target: Target, load: Load, clock: Clock, emit: Emit, secret: str | None, cores: int
    ) -> None:
        self._target, self._load, self._clock, self._emit, self._secret = target, load, clock, emit, secret
        self._cores = cores
        self._pace = fleet_size.Pace()
        self._sent = 0  # the highest id so far
        self._now: Driver | Fleet = Driver(target, load, clock, self._note, secret)
        self._stops = 0
        self._notes: list[str] = []

    async def __aenter__(self) -> Growing:
        self._began_s = time.monotonic()
        await self._now.__aenter__()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self._now.__aexit__()

    aborted = property(lambda self: self._now.aborted)
    stopped = property(lambda self: self._now.stopped)
    over = property(lambda self: self._now.over)

    @property
    def notes(self) -> list[str]:
        return self._notes + self._now.notes

    def request_stop(self) -> None:
        self._stops += 1
        self._now.request_stop()

    def snapshot(self) -> Snapshot:
        return self._now.snapshot()

    def client_facts(self) -> ClientFacts:
        return self._now.client_facts()

    async def run_stage(self, stage: Stage) -> Phase:
        if stage.concurrency != 1 and isinstance(self._now, Driver) and not self._now.over:
            await self._grow()
        return await self._now.run_stage(stage)

    def _note(self, record: RequestRecord) -> None:
        self._sent = max(self._sent, record.id)
        self._pace.note(record)
        self._emit(record)

    async def _grow(self) -> None:
        """The workers begin where this process stops, with what is left of the deadline."""
        events = fleet_size.events_per_s(self._load, self._pace)
        workers = fleet_size.workers(events, self._cores)
        if workers == 1:
            return
        load, spent_s = self._load, time.monotonic() - self._began_s
        if load.deadline_s is not None:
            load = msgspec.structs.replace(load, deadline_s=max(0.0, load.deadline_s - spent_s))
        fleet = Fleet(self._target, load, self._clock, self._emit, self._secret, workers, self._sent)
        await fleet.__aenter__()
        before, self._now = self._now, fleet
        for _ in range(self._stops):  # what came while the workers started
            fleet.request_stop()
        self._notes += [*before.notes, f"{workers} driver processes: about {events:,.0f} events/s expected"]
        await before.__aexit__()
