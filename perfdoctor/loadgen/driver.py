"""The closed loop: users who each send their next request when they have their answer.

One thread, one event loop. Records leave through `emit` the moment a request ends. Nothing is retried, except
what no user of a server would count: a dead kept-alive connection (transport.py), and a server's refusal of
`stream_options`, which is then left out for the rest of the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from perfdoctor.clock import Clock
from perfdoctor.errors import PerfdoctorError
from perfdoctor.loadgen.exchange import Exchange
from perfdoctor.loadgen.health import Health, frozen_heap
from perfdoctor.loadgen.prompts._prompt import Source
from perfdoctor.loadgen.protocols._protocol import Ask, Protocol
from perfdoctor.loadgen.refusal import Verdicts
from perfdoctor.loadgen.transports._transport import Request, Transport
from perfdoctor.loadgen.urls import completion_url, cut
from perfdoctor.model import ClientFacts, Load, Phase, PhaseName, RequestRecord, Target
from perfdoctor.redact import Redactor, clean_url, header_secrets, url_secrets
from perfdoctor.registry import load_member

# Between the first sends of two users: else their connects queue in this client, charged to the server. One
# request takes about 0.4 ms of CPU to send.
STAGGER_S = 0.002
FAILURE_PAUSE_S = 0.1  # before a user's next request: a server that refuses at once is not hammered
_NO_MODEL = "default"  # most single-model servers take any name


@dataclass(frozen=True, slots=True)
class Stage:
    """One phase of load: until `requests` are sent or `duration_s` is over, whichever comes first."""

    phase: PhaseName
    concurrency: int
    requests: int | None = None
    duration_s: float | None = None
    headers: dict[str, str] = field(default_factory=dict)
    output_tokens: int | None = None  # None: the load's
    first_tokens: tuple[int, ...] = ()  # the same of more requests, which come before those

    @property
    def total(self) -> int | None:
        return self.requests + len(self.first_tokens) if self.requests else None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counts of the current stage, for the live line. `tokens` are chunks while an answer is open."""

    done: int = 0
    ok: int = 0
    failed: int = 0
    in_flight: int = 0
    tokens: int = 0
    elapsed_s: float = 0.0


class Driver:
    """Use as an async context manager; then run stages one after the other."""

    def __init__(
        self,
        target: Target,
        load: Load,
        clock: Clock,
        emit: Callable[[RequestRecord], None],
        secret: str | None = None,
    ) -> None:
        self._target, self._load, self._clock, self._emit = target, load, clock, emit
        endpoint = target.endpoint or ""
        self._protocol: Protocol = load_member("perfdoctor.loadgen.protocols", target.api, "PROTOCOL")[0]
        url = completion_url(endpoint, self._protocol.path)
        key = {"Authorization": f"Bearer {secret}"} if secret else {}
        origin, self._path = cut(url)
        sent = {"Content-Type": "application/json", "Accept": "text/event-stream", **key, **target.headers}
        make = load_member("perfdoctor.loadgen.transports", "aiohttp", "TRANSPORT")[0]
        self._transport: Transport = make(origin, sent, target.wire, load)
        source = load_member("perfdoctor.loadgen.prompts", load.prompts.source, "SOURCE")[0]
        self._source: Source = source(load.prompts, load.seed, clock.zero_ns)
        self._redactor = Redactor([secret or "", *header_secrets(target.headers), *url_secrets(endpoint)])
        self._model = target.served_name or target.model or _NO_MODEL
        self._verdicts = Verdicts(clean_url(url), self._model, has_key=bool(secret))
        self._ask_usage = True
        self._next_id = 0
        self._steady_facts: ClientFacts | None = None
        self._last_facts = ClientFacts()
        self._begin(Stage("warmup", 1))
        self._stops = 0
        self.aborted: PerfdoctorError | None = None

    async def __aenter__(self) -> Driver:
        self._loop = asyncio.get_running_loop()
        self._stopping, self._cancelling = asyncio.Event(), asyncio.Event()
        await self._transport.open()
        self._closing = ExitStack()
        self._closing.enter_context(frozen_heap())
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
        return Snapshot(
            done=self._ok + self._failed,
            ok=self._ok,
            failed=self._failed,
            in_flight=len(self._open),
            tokens=self._tokens + sum(len(e.answer.token_ns) for e in self._open),
            elapsed_s=(time.perf_counter_ns() - self._start_ns) / 1e9,
        )

    def client_facts(self) -> ClientFacts:
        """The driver's health in the last steady stage, or else in the last stage of any kind."""
        return self._steady_facts or self._last_facts

    async def run_stage(self, stage: Stage) -> Phase:
        """Drive one stage to its end, its drain included."""
        self._begin(stage)
        health = self._health
        users: list[asyncio.Task[None]] = []
        with health.watching():
            try:
                for number in range(stage.concurrency):
                    due_ns = self._start_ns + int(number * STAGGER_S * 1e9)
                    users.append(asyncio.create_task(self._use(stage, due_ns)))
                await self._until_finished(users, stage.duration_s)
            finally:
                for user in users:
                    user.cancel()
                endings = await asyncio.gather(*users, return_exceptions=True)
        _raise_first(endings)
        self._last_facts = health.facts()
        if stage.phase == "steady":
            self._steady_facts = self._last_facts
        if not self._stopping.is_set():
            self._give_up(self._verdicts.at_stage_end())
        start_s, end_s = self._clock.at(self._start_ns), self._clock.now()
        return Phase(name=stage.phase, start_s=start_s, end_s=end_s, concurrency=stage.concurrency)

    # -- the stage's inside

    def _begin(self, stage: Stage) -> None:
        self._left = stage.total  # None: no limit
        self._first_tokens = list(stage.first_tokens)
        self._issuing = True
        self._ok = self._failed = self._tokens = 0
        self._open: set[Exchange] = set()
        self._health = Health()
        self._start_ns = time.perf_counter_ns()

    async def _until_finished(self, users: list[asyncio.Task[None]], duration_s: float | None) -> None:
        """Until the users have nothing left to do, or the time is over and the drain too."""
        left, idle = len(users), asyncio.Event()

        def ended(user: asyncio.Task[None]) -> None:
            nonlocal left
            left -= 1
            if left == 0 or (not user.cancelled() and user.exception()):
                idle.set()

        for user in users:
            user.add_done_callback(ended)
        if not await _either(idle, self._stopping, duration_s):
            self._issuing = False
            await _either(idle, self._cancelling, self._load.drain_s)

    def _may_send(self) -> bool:
        if not self._issuing or self._stopping.is_set() or self._left == 0:
            return False
        if self._left is not None:
            self._left -= 1
        return True

    async def _use(self, stage: Stage, due_ns: int) -> None:
        """One user: the next request is due when the last one ended."""
        await asyncio.sleep(max(0.0, (due_ns - time.perf_counter_ns()) / 1e9))
        while self._may_send():
            exchange = await self._request(stage, due_ns)
            if exchange.outcome == "ok":
                due_ns = exchange.end_ns or time.perf_counter_ns()
            else:
                await asyncio.sleep(FAILURE_PAUSE_S)
                due_ns = time.perf_counter_ns()

    async def _request(self, stage: Stage, due_ns: int) -> Exchange:
        self._next_id += 1
        prompt = self._source.prompt(self._next_id)
        tokens = stage.output_tokens or prompt.output_tokens
        if self._first_tokens:
            tokens = self._first_tokens.pop(0)
        ask = Ask(self._model, prompt.messages, tokens, self._load.temperature, usage=self._ask_usage)
        exchange = Exchange(self._next_id, stage.phase, tokens, due_ns, self._protocol)
        await self._exchange(exchange, ask, stage)
        if exchange.refused_usage and ask.usage:
            self._ask_usage = False
            exchange = Exchange(exchange.id, stage.phase, tokens, time.perf_counter_ns(), self._protocol)
            await self._exchange(exchange, replace(ask, usage=False), stage)
        return exchange

    async def _exchange(self, exchange: Exchange, ask: Ask, stage: Stage) -> None:
        body = msgspec.json.encode(self._protocol.body(ask))
        headers = {**stage.headers, "X-Request-Id": str(exchange.id)}
        request = Request("POST", self._path, headers, body)
        self._open.add(exchange)
        try:
            await exchange.run(self._transport, request, self._load.timeout_s)
        finally:
            self._open.discard(exchange)
            if not (exchange.refused_usage and ask.usage):
                self._finish(exchange, stage.concurrency)

    def _finish(self, exchange: Exchange, concurrency: int) -> None:
        record = exchange.record(self._clock, self._redactor)
        self._tokens += record.output_tokens or 0
        if not record.censored:
            self._ok += record.outcome == "ok"
            self._failed += record.outcome != "ok"
        self._health.redialled += record.redialled
        if exchange.sent_ns is not None:
            self._health.late_s.append((exchange.sent_ns - exchange.due_ns) / 1e9)
        self._emit(record)
        self._give_up(self._verdicts.note(record, concurrency))

    def _give_up(self, error: PerfdoctorError | None) -> None:
        """Nothing more is to be learnt from this target, in this stage or in later ones."""
        if error and not self.aborted:
            self.aborted = error
            self._stopping.set()
            self._cancelling.set()


async def _either(wanted: asyncio.Event, other: asyncio.Event, timeout_s: float | None) -> bool:
    """Wait for one of two events or the timeout; whether it was the wanted one."""
    waits = [asyncio.create_task(event.wait()) for event in (wanted, other)]
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return wanted.is_set()


def _raise_first(endings: list[BaseException | None]) -> None:
    """A user ends by itself or by cancellation; anything else is a defect and must be seen."""
    for ending in endings:
        if isinstance(ending, Exception):
            raise ending
