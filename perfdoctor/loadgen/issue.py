"""From a due instant to a record: what both kinds of load share for each request.

Records leave through `emit` the moment a request ends; nothing is kept but counts. Nothing is retried, except
what no user of a server would count: a dead kept-alive connection (the transport's business), and a server's
refusal of `stream_options`, which is then left out for the rest of the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import msgspec

from perfdoctor.clock import Clock
from perfdoctor.loadgen.exchange import Exchange
from perfdoctor.loadgen.health import Health
from perfdoctor.loadgen.prompts._prompt import Prompt
from perfdoctor.loadgen.protocols._protocol import Ask
from perfdoctor.loadgen.record import record_of
from perfdoctor.loadgen.recount import Recount
from perfdoctor.loadgen.stage import Share, Stage
from perfdoctor.loadgen.time_limit import TimeLimits
from perfdoctor.loadgen.transports._transport import Request
from perfdoctor.loadgen.way import Way, make_source
from perfdoctor.model import Load, PhaseName, RequestRecord


class Issuer:
    """Sends requests one by one, as the loops tell it. `on_end` sees every record; with a tokenizer some of
    them before they are emitted, as their tokens are still to be counted (see settle).
    """

    def __init__(
        self,
        way: Way,
        load: Load,
        clock: Clock,
        emit: Callable[[RequestRecord], None],
        on_end: Callable[[RequestRecord], None],
        share: Share,
    ) -> None:
        self._way, self._load, self._clock = way, load, clock
        self._emit, self._on_end, self._share = emit, on_end, share
        self._ask, self._protocol, self._source = way.ask, way.protocol, way.source
        self._same = way.protocol.request(way.ask, way.path) if way.protocol.fixed else None
        self._recount = Recount(way.counter, emit) if way.counter else None
        self._ids = self._prompts = share.first + share.worker + 1 - share.workers
        self._limits = TimeLimits(load.timeout_s)
        self.open: set[Exchange] = set()
        self.open_max = 0
        self.begin(Stage("warmup", 1))

    def begin(self, stage: Stage) -> None:
        self._stage = stage
        self._first_tokens = list(stage.first_tokens)
        self.health = Health()
        self.ok = self.failed = self.tokens = 0
        if stage.prompt_tokens is not None:
            asked = msgspec.structs.replace(self._load.prompts, input_tokens=stage.prompt_tokens)
            self._source = make_source(asked, self._load, self._clock.zero_ns)
        if stage.concurrency is None and self._way.trace:  # its first prompt is due at its first instant
            self._source = self._way.trace.source
            self._prompts = self._share.worker + 1 - self._share.workers

    async def settle(self) -> None:
        """Return when all records of what has ended are emitted."""
        if self._recount:
            await self._recount.settle()

    def next_prompt(self) -> Prompt:
        if not self._stage.same_prompt:
            self._prompts += self._share.workers
        return self._source.prompt(self._prompts)

    async def send(self, phase: PhaseName, due_ns: int, prompt: Prompt, ready_ns: int = 0) -> Exchange:
        """Send one request and read its answer. `ready_ns`: when it could be sent, if later than due."""
        exchange = Exchange(self._next_id(), phase, due_ns, self._protocol, self._asking(prompt))
        await self._exchange(exchange, ready_ns)
        while less := exchange.without_refused:
            self._ask = replace(self._ask, usage=less.usage, per_chunk=less.per_chunk)
            again_ns = time.perf_counter_ns()
            exchange = Exchange(exchange.id, phase, again_ns, self._protocol, less)
            await self._exchange(exchange, again_ns)
        return exchange

    def _asking(self, prompt: Prompt) -> Ask:
        """What this prompt asks for, in this stage."""
        if self._same:
            return self._ask
        tokens = self._stage.output_tokens or prompt.output_tokens
        if self._first_tokens:
            tokens = self._first_tokens.pop(0)
        common = self._ask
        return Ask(  # not replace(), which costs several times as much
            common.model,
            prompt.messages,
            tokens,
            temperature=common.temperature,
            stream=common.stream,
            usage=common.usage,
            per_chunk=common.per_chunk,
            extra=common.extra,
            number=self._ids,
            variables=prompt.variables,
            digest=prompt.digest if self._protocol.tokens else None,  # a body of any HTTP varies beside it
            turn=prompt.turn,
            keep_text=common.keep_text or prompt.follow_up is not None,
        )

    def skip(self, phase: PhaseName, due_ns: int) -> None:
        """Record a request that was due, but that the end of the load came before."""
        record = RequestRecord(
            id=self._next_id(),
            phase=phase,
            due_s=self._clock.at(due_ns),
            outcome="not_sent",
            error="due, but not sent before the load ended",
            censored=True,
            worker=self._share.worker,
        )
        self._emit(record)

    def _next_id(self) -> int:
        self._ids += self._share.workers
        return self._ids

    async def _exchange(self, exchange: Exchange, ready_ns: int) -> None:
        made = self._same or self._protocol.request(exchange.ask, self._way.path)
        headers = {**made.headers, **self._stage.headers, "X-Request-Id": str(exchange.id)}
        request = Request(made.method, made.path, headers, made.body)
        self.open.add(exchange)
        self.open_max = max(self.open_max, len(self.open))
        try:
            await exchange.run(self._way.transport, request, self._limits)
        finally:
            self.open.discard(exchange)
            if not exchange.without_refused:
                self._finish(exchange, ready_ns)

    def _finish(self, exchange: Exchange, ready_ns: int) -> None:
        way = self._way
        record = record_of(exchange, self._clock, way.redactor, self._share.worker, self._stage.kind)
        if record.phase == self._stage.phase:
            self._count(exchange, record, ready_ns)
        if self._recount:
            self._recount.take(record, exchange.answer)
        else:
            self._emit(record)
        self._on_end(record)

    def _count(self, exchange: Exchange, record: RequestRecord, ready_ns: int) -> None:
        self.tokens += record.output_tokens or 0
        if not record.censored:
            self.ok += record.outcome == "ok"
            self.failed += record.outcome != "ok"
        self.health.redialled += record.redialled
        if exchange.sent_ns is not None:
            self.health.late_s.append((exchange.sent_ns - max(exchange.due_ns, ready_ns)) / 1e9)
