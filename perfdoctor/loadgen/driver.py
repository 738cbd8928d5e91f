"""Drives stages of load against one target, and knows the ways in which a stage may end.

One thread, one event loop. The loops decide when a request is sent (closed_loop, open_loop), the issuer how
(issue), the health whether this client was able to measure it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import msgspec

from perfdoctor.clock import Clock
from perfdoctor.errors import PerfdoctorError
from perfdoctor.loadgen import schedule
from perfdoctor.loadgen.budget import Budget
from perfdoctor.loadgen.closed_loop import ClosedLoop
from perfdoctor.loadgen.error_rate import ErrorRate
from perfdoctor.loadgen.headroom import Headroom, make_room
from perfdoctor.loadgen.health import frozen_heap
from perfdoctor.loadgen.issue import Issuer
from perfdoctor.loadgen.open_loop import OpenLoop
from perfdoctor.loadgen.pacer import Alarm
from perfdoctor.loadgen.stage import Share, Snapshot, Stage
from perfdoctor.loadgen.way import find_way
from perfdoctor.model import ClientFacts, Load, Phase, RequestRecord, Target

__all__ = ["Driver", "Share", "Snapshot", "Stage"]


class Driver:
    """Use as an async context manager; then run stages one after the other.

    `aborted`: why the target cannot be driven any further. `stopped`: the crossed `max_error_rate`, which
    ended the load or was seen at its end. `notes`: other endings that a reader must know of.
    """

    def __init__(
        self,
        target: Target,
        load: Load,
        clock: Clock,
        emit: Callable[[RequestRecord], None],
        secret: str | None = None,
        share: Share = Share(),  # noqa: B008 - frozen
    ) -> None:
        self._target, self._load, self._clock, self._share = target, load, clock, share
        self._way = find_way(target, load, clock, secret)
        self._issuer = Issuer(self._way, load, clock, emit, self._on_end, share)
        self.verdicts = self._way.verdicts
        self._error_rate = None if load.max_error_rate is None else ErrorRate(load.max_error_rate)
        self._steady_facts: ClientFacts | None = None
        self._last_facts = ClientFacts()
        self._start_ns = time.perf_counter_ns()
        self._steady_ns: int | None = None
        self._stops = 0
        self.aborted: PerfdoctorError | None = None
        self.stopped: str | None = None
        self.notes: list[str] = list(self._way.trace.notes) if self._way.trace else []

    async def __aenter__(self) -> Driver:
        make_room(self._load, self._target)
        self._loop = asyncio.get_running_loop()
        self._stopping, self._cancelling = asyncio.Event(), asyncio.Event()
        await self._way.transport.open()
        self._closing = ExitStack()
        self._closing.enter_context(frozen_heap())
        self._headroom = Headroom(
            self._way.transport, self._issuer.open, unix_socket=self._target.wire.unix_socket is not None
        )
        self._headroom.start(self._loop)
        self._closing.callback(self._headroom.stop)
        if self._load.deadline_s is not None:
            self._closing.callback(self._loop.call_later(self._load.deadline_s, self._at_deadline).cancel)
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._closing.close()
        await self._way.transport.close()

    # -- what others see

    def request_stop(self) -> None:
        """First call: send nothing new, let open requests finish for `drain_s`. Second: cancel them.

        Harmless from any thread and any number of times.
        """
        self._stops += 1
        self._loop.call_soon_threadsafe(self._stopping.set)
        if self._stops > 1:
            self._loop.call_soon_threadsafe(self._cancelling.set)

    def snapshot(self) -> Snapshot:
        issuer = self._issuer
        return Snapshot(
            done=issuer.ok + issuer.failed,
            ok=issuer.ok,
            failed=issuer.failed,
            in_flight=len(issuer.open),
            tokens=issuer.tokens + sum(len(e.answer.token_ns) for e in issuer.open),
            elapsed_s=(time.perf_counter_ns() - self._start_ns) / 1e9,
        )

    def client_facts(self) -> ClientFacts:
        """The driver's health in the last steady stage, or else in the last stage of any kind."""
        return self._steady_facts or self._last_facts

    async def run_stage(self, stage: Stage, due_s: list[float] | None = None) -> Phase:
        """Drive one stage to its end, its drain included. The phase begins where a lead handed over.

        Without a number or a time, a file of prompts is sent through once, its conversations whole. `due_s`:
        what `plan` gave for this stage; None: ask it now.
        """
        stage, whole = self._bounded(stage)
        if due_s is None:
            due_s = self.plan(stage)
        start_ns = stage.start_ns or time.perf_counter_ns()
        self._start_ns, self._steady_ns = start_ns, None
        self._issuer.begin(stage)
        with self._issuer.health.watching():
            await self._drive(stage, start_ns, due_s, whole)
        await self._issuer.settle()
        self._last_facts = self._headroom.add_to(self._issuer.health.facts(), self._issuer.open_max)
        if stage.phase == "steady":
            self._steady_facts = self._last_facts
            self.stopped = self.stopped or (self._error_rate.at_end() if self._error_rate else None)
        if not self._stopping.is_set():
            self._give_up(self.verdicts.at_stage_end())
        end_s = self._clock.now()
        start_s = end_s if self._steady_ns is None else self._clock.at(self._steady_ns)
        return Phase(name=stage.phase, start_s=start_s, end_s=end_s, concurrency=stage.concurrency)

    @property
    def over(self) -> bool:
        """No later stage will send anything."""
        return self._stopping.is_set()

    # -- a stage's inside

    def _bounded(self, stage: Stage) -> tuple[Stage, bool]:
        """The stage, with the number of prompts where it has no other end, and whether that was needed."""
        endless = stage.requests is None and stage.duration_s is None and not self._load.ramp
        if stage.concurrency is None and self._way.trace:
            return stage, False
        count = self._way.source.count if endless else None
        return (stage, False) if count is None else (replace(stage, requests=count), True)

    def plan(self, stage: Stage) -> list[float]:
        """Our share of an open loop's due instants; made before the clock starts, as it takes its time."""
        stage, _ = self._bounded(stage)
        if stage.concurrency is not None:
            return []
        load = msgspec.structs.replace(self._load, requests=stage.requests, duration_s=stage.duration_s)
        recorded_s = self._way.trace.due_s if self._way.trace else ()
        whole = schedule.plan(load, stage.lead_requests, stage.lead_s, recorded_s)
        return list(map(float, whole.due_s[self._share.worker :: self._share.workers]))

    async def _drive(self, stage: Stage, start_ns: int, due_s: list[float], whole: bool) -> None:
        over, timers = asyncio.Event(), ExitStack()

        def on_steady(at_ns: int) -> None:
            self._steady_ns = at_ns
            if stage.lead_requests or stage.lead_s:
                self._issuer.health.restart()
            if stage.duration_s is not None:
                end_ns = at_ns + int(stage.duration_s * 1e9)
                timers.callback(Alarm(self._loop, end_ns, over.set).cancel)

        share = self._share_of(stage)
        with timers:
            budget = Budget(stage, share, start_ns, self._stopping, on_steady, whole)
            if lead_end := budget.watch_lead(self._loop):
                timers.callback(lead_end.cancel)
            load: ClosedLoop | OpenLoop
            if stage.concurrency is None:
                due_ns = [start_ns + int(at_s * 1e9) for at_s in due_s]
                cap = self._load.max_in_flight
                load = OpenLoop(self._issuer, due_ns, budget, max(1, share.of(cap)) if cap else None)
            else:
                load = ClosedLoop(self._issuer, stage, share, budget, start_ns)
            work = asyncio.create_task(load.run())
            try:
                if not await self._first(work, self._stopping, over):
                    load.stop_issuing(time.perf_counter_ns())
                    await self._first(work, self._cancelling, timeout_s=self._load.drain_s)
            finally:
                load.stop_issuing(time.perf_counter_ns())
                work.cancel()
                await asyncio.wait({work})
        if not work.cancelled():
            work.result()

    def _share_of(self, stage: Stage) -> Share:
        """With fewer users than processes, the first processes have one user each and the others nothing."""
        share, users = self._share, stage.concurrency
        return share if users is None else Share(share.worker, max(1, min(share.workers, users)))

    async def _first(
        self, work: asyncio.Task[None], *events: asyncio.Event, timeout_s: float | None = None
    ) -> bool:
        """Wait for the end of the work, one of the events or the timeout; whether the work ended."""
        waits = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait({work, *waits}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return work.done()

    def _on_end(self, record: RequestRecord) -> None:
        users = self._issuer.open_max
        self._give_up(self.verdicts.note(record, users))
        if self._error_rate and not record.censored and not self.stopped:
            self.stopped = self._error_rate.note(record.outcome != "ok")
            if self.stopped:
                self._stopping.set()

    def _give_up(self, error: PerfdoctorError | None) -> None:
        """Nothing more is to be learnt from this target, in this stage or in later ones. One process of
        several sees a part of the answers only, so the fleet judges instead."""
        if error and not self.aborted and self._share.workers == 1:
            self.aborted = error
            self._stopping.set()
            self._cancelling.set()

    def _at_deadline(self) -> None:
        self.notes.append(
            f"the deadline of {self._load.deadline_s:g} s was reached: what was open then was cancelled"
        )
        self._stopping.set()
        self._cancelling.set()
