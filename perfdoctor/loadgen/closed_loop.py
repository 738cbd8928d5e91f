"""The closed loop: users who each send their next request when they have their answer."""

from __future__ import annotations

import asyncio
import time

from perfdoctor.loadgen.budget import Budget
from perfdoctor.loadgen.exchange import Exchange
from perfdoctor.loadgen.issue import Issuer
from perfdoctor.loadgen.prompts._prompt import Prompt
from perfdoctor.loadgen.stage import Share, Stage

# Between the first sends of two users: else their connects queue in this client, charged to the server. One
# request takes about 0.4 ms of CPU to send.
STAGGER_S = 0.002
FAILURE_PAUSE_S = 0.1  # before a user's next request: a server that refuses at once is not hammered


class ClosedLoop:
    """One task for each user of our share, and none for a request."""

    def __init__(self, issuer: Issuer, stage: Stage, share: Share, budget: Budget, start_ns: int) -> None:
        self._issuer, self._budget, self._start_ns = issuer, budget, start_ns
        users = stage.concurrency or 0
        step_s = stage.ramp_up_s / users if stage.ramp_up_s else STAGGER_S
        self._starts_ns = [
            start_ns + int(i * step_s * 1e9) for i in range(share.worker, users, share.workers)
        ]

    async def run(self) -> None:
        """Until no user has anything left to send, and every answer is there."""
        users = [asyncio.create_task(self._use(start_ns)) for start_ns in self._starts_ns]
        try:
            await asyncio.gather(*users)
        finally:
            for user in users:
                user.cancel()
            await asyncio.gather(*users, return_exceptions=True)

    def stop_issuing(self, at_ns: int) -> None:
        """Nothing is due in a closed loop but what has been sent."""
        self._budget.close()

    async def _use(self, due_ns: int) -> None:
        """One user: the next request is due when the last one ended."""
        await _sleep_until(due_ns)
        issuer, budget = self._issuer, self._budget
        prompt: Prompt | None = None
        while phase := budget.take(time.perf_counter_ns(), later_turn=prompt is not None):
            prompt = prompt or issuer.next_prompt()
            exchange = await issuer.send(phase, due_ns, prompt)
            prompt, pause_s = after(exchange, prompt)
            if exchange.outcome != "ok":
                pause_s = FAILURE_PAUSE_S
            due_ns = exchange.end_ns or time.perf_counter_ns()
            if pause_s:
                due_ns += int(pause_s * 1e9)
                await _sleep_until(due_ns)


async def _sleep_until(due_ns: int) -> None:
    """Not earlier, as a timer of the loop may be by a part of its millisecond."""
    while (left_ns := due_ns - time.perf_counter_ns()) > 0:  # noqa: ASYNC110 - no event comes
        await asyncio.sleep(left_ns / 1e9)


def after(exchange: Exchange, prompt: Prompt) -> tuple[Prompt | None, float]:
    """The next turn of a conversation and the pause before it; nothing follows an answer that failed."""
    if prompt.follow_up is None or exchange.outcome != "ok":
        return None, 0.0
    turn = prompt.follow_up("".join(exchange.answer.texts or ()))
    return turn, turn.pause_s if turn else 0.0
