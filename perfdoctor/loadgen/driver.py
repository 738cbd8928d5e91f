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
from perfdoctor.loadgen.prompts._prompt import Source
from perfdoctor.loadgen.protocols._protocol import Ask, make_protocol
from perfdoctor.loadgen.refusal import Verdicts
from perfdoctor.loadgen.stage import Share, Snapshot, Stage
from perfdoctor.loadgen.transports._transport import Transport
from perfdoctor.loadgen.urls import completion_url, cut
from perfdoctor.model import ClientFacts, Load, Phase, RequestRecord, Target
from perfdoctor.redact import Redactor, clean_url, header_secrets, url_secrets
from perfdoctor.registry import load_member

__all__ = ["Driver", "Share", "Snapshot", "Stage"]

_NO_MODEL = "default"  # most single-model servers take any name


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
        endpoint = target.endpoint or ""
        make_source = load_member("perfdoctor.loadgen.prompts", load.prompts.source, "SOURCE")[0]
        self._source: Source = make_source(load.prompts, load.seed, clock.zero_ns)
        protocol = make_protocol(target, load.seed, self._source.variables)
        url = endpoint if protocol.absolute else completion_url(endpoint, protocol.path)
        key = {"Authorization": f"Bearer {secret}"} if secret else {}
        origin, path = cut(url)
        kind = {"Content-Type": protocol.content_type} if protocol.content_type else {}
        sent = {**kind, "Accept": protocol.accept, **key, **target.headers}
        make = load_member("perfdoctor.loadgen.transports", "aiohttp", "TRANSPORT")[0]
        self._transport: Transport = make(origin, sent, target.wire, load)
        redactor = Redactor([secret or "", *header_secrets(target.headers), *url_secrets(endpoint)])
        ask = Ask(
            target.served_name or target.model or _NO_MODEL,
            messages=(),
            max_tokens=0,
            temperature=load.temperature,
            stream=target.stream,
            per_chunk=load.prompts.count_per_chunk,
            extra=target.extra_body,
            keep_text=load.prompts.tokenizer is not None,
        )
        self._issuer = Issuer(
            load,
            ask,
            path,
            protocol,
            self._transport,
            self._source,
            clock,
            redactor,
            emit,
            self._on_end,
            share,
        )
        self.verdicts = Verdicts(clean_url(url), ask.model, has_key=bool(secret))
        self._error_rate = None if load.max_error_rate is None else ErrorRate(load.max_error_rate)
        self._steady_facts: ClientFacts | None = None
        self._last_facts = ClientFacts()
        self._start_ns = time.perf_counter_ns()
        self._steady_ns: int | None = None
        self._stops = 0
        self.aborted: PerfdoctorError | None = None
        self.stopped: str | None = None
        self.notes: list[str] = []

    async def __aenter__(self) -> Driver:
        make_room(self._load, self._target)
        self._loop = asyncio.get_running_loop()
        self._stopping, self._cancelling = asyncio.Event(), asyncio.Event()
        await self._transport.open()
        self._closing = ExitStack()
        self._closing.enter_context(frozen_heap())
        self._headroom = Headroom(self._transport, self._issuer.open)
        self._headroom.start(self._loop)
        self._closing.callback(self._headroom.stop)
        if self._load.deadline_s is not None:
            self._closing.callback(self._loop.call_later(self._load.deadline_s, self._at_deadline).cancel)
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._closing.close()
        await self._transport.close()

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

    async def run_stage(self, stage: Stage) -> Phase:
        """Drive one stage to its end, its drain included. The phase begins where a lead handed over.

        Without a number or a time, a file of prompts is sent through once, its conversations whole.
        """
        endless = stage.requests is None and stage.duration_s is None and not self._load.ramp
        whole = endless and self._source.count is not None
        if whole:
            stage = replace(stage, requests=self._source.count)
        start_ns = stage.start_ns or time.perf_counter_ns()
        self._start_ns, self._steady_ns = start_ns, None
        self._issuer.begin(stage)
        with self._issuer.health.watching():
            await self._drive(stage, start_ns, whole)
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

    async def _drive(self, stage: Stage, start_ns: int, whole: bool) -> None:
        over, timers = asyncio.Event(), ExitStack()

        def on_steady(at_ns: int) -> None:
            self._steady_ns = at_ns
            if stage.lead_requests or stage.lead_s:
                self._issuer.health.restart()
            if stage.duration_s is not None:
                left_s = stage.duration_s - (time.perf_counter_ns() - at_ns) / 1e9
                timers.callback(self._loop.call_later(max(0.0, left_s), over.set).cancel)

        share = self._share_of(stage)
        with timers:
            budget = Budget(stage, share, start_ns, self._stopping, on_steady, whole)
            if lead_end := budget.watch_lead(self._loop, time.perf_counter_ns()):
                timers.callback(lead_end.cancel)
            load = self._make_loop(stage, share, budget, start_ns)
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

    def _make_loop(self, stage: Stage, share: Share, budget: Budget, start_ns: int) -> ClosedLoop | OpenLoop:
        if stage.concurrency is not None:
            return ClosedLoop(self._issuer, stage, share, budget, start_ns)
        load = msgspec.structs.replace(self._load, requests=stage.requests, duration_s=stage.duration_s)
        due_s = schedule.plan(load, stage.lead_requests, stage.lead_s).due_s[share.worker :: share.workers]
        due_ns = (start_ns + (due_s * 1e9).astype("int64")).tolist()
        cap = load.max_in_flight
        return OpenLoop(self._issuer, due_ns, budget, max(1, share.of(cap)) if cap else None)

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
