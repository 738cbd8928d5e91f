"""Tokens of answers whose server does not count them, counted beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.tokens import Counter, count_texts
from perfdoctor.model import RequestRecord


class Recount:
    """Holds a record back while one thread counts its answer: in the loop, every open stream would wait for
    it, a millisecond for 250 tokens. The tokenizer leaves the interpreter's lock alone meanwhile.
    """

    def __init__(self, counter: Counter, emit: Callable[[RequestRecord], None]) -> None:
        self._counter, self._emit = counter, emit
        self._pool = ThreadPoolExecutor(1, "count-tokens")
        self._pending: set[asyncio.Future[int | None]] = set()

    def take(self, record: RequestRecord, answer: Answer) -> None:
        """Emit the record later, or at once when there is nothing that a tokenizer could count better."""
        if record.token_source not in (None, "chunks") or not (answer.texts or answer.thoughts):
            self._emit(record)
            return
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._pool, count_texts, answer, self._counter)
        self._pending.add(work)
        work.add_done_callback(partial(self._release, record))

    async def settle(self) -> None:
        """Return when every record has been emitted."""
        while self._pending:
            await asyncio.wait(set(self._pending))

    def _release(self, record: RequestRecord, work: asyncio.Future[int | None]) -> None:
        self._pending.discard(work)
        tokens = None if work.cancelled() or work.exception() else work.result()
        if tokens is not None:
            record = msgspec.structs.replace(record, output_tokens=tokens, token_source="tokenizer")
        self._emit(record)
