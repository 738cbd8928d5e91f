"""The open loop: requests are sent when the schedule says so, whatever the server does.

A request whose instant has passed is sent at once and keeps its due instant. Above `max_in_flight` it waits
for a free slot, in order. A later turn of a conversation is due when the answer before it ended.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from itertools import count

from perfdoctor.loadgen.budget import Budget
from perfdoctor.loadgen.closed_loop import after
from perfdoctor.loadgen.issue import Issuer
from perfdoctor.loadgen.pacer import Pacer
from perfdoctor.loadgen.prompts._prompt import Prompt
from perfdoctor.model import PhaseName


class OpenLoop:
    """Our share of one schedule, as instants of perf_counter_ns."""

    def __init__(self, issuer: Issuer, due_ns: list[int], budget: Budget, max_in_flight: int | None) -> None:
        self._issuer, self._budget, self._max_in_flight = issuer, budget, max_in_flight
        self._due_ns = due_ns
        self._next = 0  # index of the first that is not yet sent
        self._turns: list[tuple[int, int, Prompt]] = []  # heap of (due, tie, later turn)
        self._tie = count()
        self._open: set[asyncio.Task[None]] = set()
        self._freed_ns = 0  # when the last request ended
        self._slot_ns = 0  # when the last wait for a slot was over
        self._defect: BaseException | None = None
        self._pacer = Pacer(asyncio.get_running_loop())

    async def run(self) -> None:
        """Until everything is sent and answered."""
        try:
            while not self._finished():
                await self._issue_next()
            while self._open and not self._defect:
                await self._pacer.until(None)
        finally:
            self._pacer.close()
            left = tuple(self._open)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        if self._defect:
            raise self._defect

    def stop_issuing(self, at_ns: int) -> None:
        """The load ends at `at_ns`: what was due by then and waits is recorded as not sent."""
        while (due_ns := self._pending_ns()) is not None and due_ns <= at_ns:
            turn = self._pop()
            if phase := self._budget.take_unsent(due_ns, later_turn=turn is not None):
                self._issuer.skip(phase, due_ns)
        self._budget.close()
        self._pacer.wake()

    def _finished(self) -> bool:
        """Whether nothing more is to be sent; an open answer may bring a later turn."""
        if self._budget.spent or self._defect:
            return True
        return self._pending_ns() is None and not self._open

    def _pending_ns(self) -> int | None:
        """When the next request is due; None: nothing is known to come."""
        scheduled = self._due_ns[self._next] if self._next < len(self._due_ns) else None
        turn = self._turns[0][0] if self._turns else None
        if scheduled is None or turn is None:
            return scheduled if turn is None else turn
        return min(scheduled, turn)

    def _pop(self) -> Prompt | None:
        """Take the next request off; None for one that begins something new."""
        scheduled = self._next < len(self._due_ns)
        if self._turns and not (scheduled and self._due_ns[self._next] <= self._turns[0][0]):
            return heapq.heappop(self._turns)[2]
        self._next += 1
        return None

    async def _issue_next(self) -> None:
        """Send the next request, or wait for what it waits for; a wait may end early."""
        due_ns, now_ns = self._pending_ns(), time.perf_counter_ns()
        if due_ns is None or due_ns > now_ns:
            await self._pacer.until(due_ns)
            return
        if self._max_in_flight and len(self._open) >= self._max_in_flight:
            await self._pacer.until(None)
            self._slot_ns = self._freed_ns
            return
        turn = self._pop()
        if phase := self._budget.take(due_ns, later_turn=turn is not None):
            prompt = turn or self._issuer.next_prompt()
            task = asyncio.create_task(self._send(phase, due_ns, self._slot_ns, prompt))
            self._open.add(task)
            task.add_done_callback(self._ended)
        await asyncio.sleep(0)  # what is late is sent at once, but not before the answers are read

    async def _send(self, phase: PhaseName, due_ns: int, ready_ns: int, prompt: Prompt) -> None:
        exchange = await self._issuer.send(phase, due_ns, prompt, ready_ns)
        turn, pause_s = after(exchange, prompt)
        if turn:
            due_ns = (exchange.end_ns or time.perf_counter_ns()) + int(pause_s * 1e9)
            heapq.heappush(self._turns, (due_ns, next(self._tie), turn))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        self._freed_ns = time.perf_counter_ns()
        self._pacer.wake()
        if not task.cancelled():
            self._defect = self._defect or task.exception()
