"""Several driver processes that look like one Driver.

The parent says when to begin and when to stop, writes what the workers send, and judges the target, since it
alone sees all answers. It measures nothing: stamps are the workers', on the clock that all processes share.

    parent --Orders, Prepare, Begin, Stop--> worker k of w: every w-th request from the k-th on
           <--Ready, Prepared, Told, Ended--

A worker that dies or falls silent ends the run: a part of the load was not sent, and a part of the answers is
missing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from perfdoctor.clock import Clock
from perfdoctor.errors import PerfdoctorError
from perfdoctor.loadgen import fleet_merge
from perfdoctor.loadgen.error_rate import ErrorRate
from perfdoctor.loadgen.fleet_messages import Ended, Orders
from perfdoctor.loadgen.fleet_process import Process
from perfdoctor.loadgen.refusal import Verdicts
from perfdoctor.loadgen.stage import Share, Snapshot, Stage
from perfdoctor.model import ClientFacts, Load, Phase, RequestRecord, Target

LEAD_NS = 30_000_000  # from the order to the common start: a message takes a millisecond, on a busy core ten
TICK_S = 0.25
# Without a word of a worker, which speaks ten times a second. Ticks, not seconds: a Ctrl-Z stops both sides.
SILENT_TICKS = 40
CANCEL_S = 5.0  # for a worker to end after a second stop
SLACK_S = 5.0  # the same after a first one, beyond the drain

_T = TypeVar("_T")


class Fleet:
    """`first`: requests that another driver sent before. Raises from its beginning what a worker raised."""

    def __init__(
        self,
        target: Target,
        load: Load,
        clock: Clock,
        emit: Callable[[RequestRecord], None],
        secret: str | None,
        workers: int,
        first: int = 0,
    ) -> None:
        self._emit, self._clock, self._drain_s = emit, clock, load.drain_s
        self._error_rate = None if load.max_error_rate is None else ErrorRate(load.max_error_rate)
        unjudged = msgspec.structs.replace(load, max_error_rate=None)
        self._workers: list[Process] = []
        self._orders = [
            Orders(target, unjudged, (clock.zero_ns, clock.wall_zero), secret, Share(k, workers, first))
            for k in range(workers)
        ]
        self._stage = Stage("warmup", 1)
        self._start_ns = time.perf_counter_ns()
        self._stops = 0
        self._stop_by_s = float("inf")  # time.monotonic() at which what still runs is killed
        self._facts: dict[str, ClientFacts] = {}
        self._defect: Exception | None = None
        self._over = False
        self.aborted: PerfdoctorError | None = None
        self.stopped: str | None = None
        self.notes: list[str] = []

    async def __aenter__(self) -> Fleet:
        self._loop = asyncio.get_running_loop()
        opening: list[asyncio.Task[Verdicts]] = []
        try:
            for number, orders in enumerate(self._orders):
                self._workers.append(Process(number, len(self._orders), self._take))
                opening.append(asyncio.create_task(self._workers[-1].open(orders)))
            self._verdicts, *_ = await asyncio.gather(*opening)
        except BaseException:
            await _cancel(opening)
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: Any) -> None:
        await asyncio.gather(*(worker.close() for worker in self._workers))

    # -- what others see

    def request_stop(self) -> None:
        """First call: send nothing new, let open requests finish. Second: cancel them. From any thread."""
        self._loop.call_soon_threadsafe(self._stop)

    def snapshot(self) -> Snapshot:
        merged = fleet_merge.snapshot([worker.snapshot for worker in self._workers])
        return replace(merged, elapsed_s=max(0.0, (time.perf_counter_ns() - self._start_ns) / 1e9))

    def client_facts(self) -> ClientFacts:
        """Of the last steady stage, or else of the last stage of any kind."""
        found = self._facts.get("steady") or self._facts.get("last") or ClientFacts()
        return msgspec.structs.replace(found, workers=len(self._orders))

    @property
    def over(self) -> bool:
        """No later stage will send anything."""
        return self._over or self._stops > 0

    async def run_stage(self, stage: Stage) -> Phase:
        """Drive one stage on all workers to its end. The first of them begin when there are fewer users."""
        if self.over:
            return self._conclude(stage, ())
        workers = self._workers[: stage.concurrency]
        self._stage = stage
        # a warm-up of fewer requests than workers would leave some without any
        lead = max(stage.lead_requests, len(workers)) if stage.lead_requests else 0
        order = replace(stage, lead_requests=lead)
        ended: list[Ended] = []
        if len(workers) == len(await self._all([(w, w.prepare(order)) for w in workers])):
            self._start_ns = stage.start_ns or time.perf_counter_ns() + LEAD_NS
            ended = await self._all([(w, w.run(self._start_ns)) for w in workers])
        if self._defect:
            raise self._defect
        return self._conclude(stage, ended)

    # -- a stage's inside

    async def _all(self, asked: Sequence[tuple[Process, Coroutine[Any, Any, _T]]]) -> list[_T]:
        """What every worker answers, waited for as long as it shows to be alive. Those that failed are left
        out."""
        runs = {asyncio.create_task(answer): worker for worker, answer in asked}
        silent = dict.fromkeys(runs.values(), 0)
        try:
            open_runs = set(runs)
            while open_runs:
                done, open_runs = await asyncio.wait(
                    open_runs, timeout=TICK_S, return_when=asyncio.FIRST_COMPLETED
                )
                for run in done:
                    if error := run.exception():
                        self._lose(error)
                if not done:
                    self._look_at([runs[run] for run in open_runs], silent)
        finally:
            await _cancel(runs)
        return [run.result() for run in runs if run.exception() is None]

    def _look_at(self, workers: Sequence[Process], silent: dict[Process, int]) -> None:
        """After a tick in which nothing ended."""
        for worker in workers:
            silent[worker] = 0 if worker.heard else silent[worker] + 1
            worker.heard = False
            if silent[worker] > SILENT_TICKS:
                worker.kill("was silent for ten seconds")
            elif time.monotonic() > self._stop_by_s:
                worker.kill("did not end when it was told to")

    def _lose(self, error: BaseException) -> None:
        """A worker is gone: what the others still have open would be no whole either."""
        if isinstance(error, PerfdoctorError):
            if self._stops and not self.aborted:  # an interrupted run raises nothing
                self.notes.append(str(error))
            self._give_up(error)
        elif isinstance(error, Exception):
            self._defect = self._defect or error
        while self._stops < 2:
            self._stop()

    def _conclude(self, stage: Stage, ended: Sequence[Ended]) -> Phase:
        if not self.over:
            self._give_up(self._verdicts.at_stage_end())
        if stage.phase == "steady" and self._error_rate:
            self.stopped = self.stopped or self._error_rate.at_end()
        if not ended:
            now_s = self._clock.now()
            return Phase(name=stage.phase, start_s=now_s, end_s=now_s, concurrency=stage.concurrency)
        merged = fleet_merge.facts([end.facts for end in ended])
        self._facts |= {stage.phase: merged, "last": merged}
        self.notes += [note for end in ended for note in end.notes if note not in self.notes]
        self._over |= any(end.over for end in ended)
        return fleet_merge.phase([end.phase for end in ended])

    def _take(self, records: tuple[RequestRecord, ...]) -> None:
        users = self._stage.concurrency or self.snapshot().in_flight
        for record in records:
            self._emit(record)
            self._give_up(self._verdicts.note(record, users))
            if self._error_rate and not record.censored and not self.stopped:
                self.stopped = self._error_rate.note(record.outcome != "ok")
                if self.stopped and not self._stops:
                    self._stop()

    def _give_up(self, error: PerfdoctorError | None) -> None:
        if error and not self.aborted:
            self.aborted = error
            while self._stops < 2:
                self._stop()

    def _stop(self) -> None:
        self._stops += 1
        patience_s = self._drain_s + SLACK_S if self._stops == 1 else CANCEL_S
        self._stop_by_s = min(self._stop_by_s, time.monotonic() + patience_s)
        for worker in self._workers:
            worker.stop()


async def _cancel(tasks: Any) -> None:
    """No task outlives its stage, and none of their errors is complained about."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
