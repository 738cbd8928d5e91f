"""The parent's side of one driver process: its start, what it says, its end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO, TypeVar

from perfdoctor import interrupts
from perfdoctor.errors import WorkerDied, tree
from perfdoctor.loadgen.fleet_messages import (
    Begin,
    Channel,
    Ended,
    Failed,
    Orders,
    Prepare,
    Prepared,
    Ready,
    Stop,
    Told,
    ToWorker,
)
from perfdoctor.loadgen.refusal import Verdicts
from perfdoctor.loadgen.stage import Snapshot, Stage
from perfdoctor.model import RequestRecord

START_S = 20.0  # importing takes half a second; more on a machine that is busy with a model
CLOSE_S = 2.0  # after its socket was closed
REAP_S = 0.01
LAST_WORDS = 2000  # characters of what a dead worker printed

_Reply = TypeVar("_Reply", Ready, Prepared, Ended)


class Process:
    """One worker, running as soon as this is made. Its end, in whatever way, ends what is being waited for.

    `on_records` gets finished requests in the order in which they ended there.
    """

    def __init__(self, number: int, of: int, on_records: Callable[[tuple[RequestRecord, ...]], None]) -> None:
        self.name = f"driver process {number + 1} of {of}"
        self._on_records = on_records
        self.snapshot = Snapshot()
        self.heard = True  # it said something since this was last set to False
        self.failure: Exception | None = None
        self._waiter: asyncio.Future[Ready | Prepared | Ended] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._process, self._socket = _spawn(self._output)
        self._channel: Channel | None = None
        self._listening: asyncio.Task[None] | None = None

    async def open(self, orders: Orders) -> Verdicts:
        """Returns when it is ready, with the judge of this target; raises what keeps it from that."""
        self._channel = Channel(*await asyncio.open_unix_connection(sock=self._socket))
        self._listening = asyncio.create_task(self._listen(self._channel))
        try:
            ready = await asyncio.wait_for(self._ask(self._channel, orders, Ready), START_S)
        except asyncio.TimeoutError:
            raise self._died(f"was not ready after {START_S:.0f} s") from None
        return ready.verdicts

    async def prepare(self, stage: Stage) -> Prepared:
        """Returns when nothing but the instant of the start is missing."""
        self.snapshot = Snapshot()
        return await self._ask(self._channel, Prepare(stage), Prepared)

    async def run(self, start_ns: int) -> Ended:
        """Drive the stage to its end. Raises the failure of a worker that does not reach it."""
        return await self._ask(self._channel, Begin(start_ns), Ended)

    def stop(self) -> None:
        if self._channel and not self.failure:
            self._channel.send(Stop())

    def kill(self, why: str) -> None:
        """`why` becomes the failure, unless it has one already."""
        self.failure = self.failure or self._died(f"{why}, so it was killed")
        self._process.kill()

    async def close(self) -> None:
        """Its end within CLOSE_S, by force if need be. To it, the end of the socket is the order to go."""
        if self._channel:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._channel.close(), CLOSE_S)
        if self._listening:
            self._listening.cancel()
        self._socket.close()
        if await self._reap(CLOSE_S) is None:
            self._process.kill()
            self._process.wait()
        self._output.close()

    # -- inside

    async def _ask(self, channel: Channel | None, message: ToWorker, kind: type[_Reply]) -> _Reply:
        if self.failure:
            raise self.failure
        assert channel
        self._waiter = asyncio.get_running_loop().create_future()
        channel.send(message)
        try:
            reply = await self._waiter
        finally:
            self._waiter = None
        assert isinstance(reply, kind)
        return reply

    async def _listen(self, channel: Channel) -> None:
        try:
            await self._hear(channel)
        except Exception as error:
            self.failure = self.failure or error
        if self.failure is None:
            self.failure = self._died(_manner(await self._reap(CLOSE_S)))
        if self._waiter and not self._waiter.done():
            self._waiter.set_exception(self.failure)

    async def _hear(self, channel: Channel) -> None:
        """Until it is gone."""
        while message := await channel.receive():
            self.heard = True
            if isinstance(message, Told):
                self.snapshot = message.snapshot
                self._on_records(message.records)
            elif isinstance(message, (Ready, Prepared, Ended)):
                if self._waiter and not self._waiter.done():
                    self._waiter.set_result(message)
            elif isinstance(message, Failed):
                self.failure = _error(self.name, message)

    async def _reap(self, timeout_s: float) -> int | None:
        """The exit code; None while it lives."""
        ends_s = time.monotonic() + timeout_s
        while self._process.poll() is None and time.monotonic() < ends_s:  # noqa: ASYNC110 - no event comes
            await asyncio.sleep(REAP_S)
        return self._process.returncode

    def _died(self, manner: str) -> WorkerDied:
        self._output.seek(0)
        words = self._output.read().decode(errors="replace")[-LAST_WORDS:].split("\n")
        last = next((line for line in reversed(words) if line.strip()), "")
        why = f"Its last words: {last}" if last else "Often the out-of-memory killer: dmesg | grep -i oom"
        do = "repeat the run; what was measured until then is kept"
        return WorkerDied(f"{self.name} {manner}", why, do)


def _spawn(output: IO[bytes]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process, and our end of the socket that is its stdin."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "perfdoctor.loadgen.worker"]
    with theirs, _blocked_signals():
        process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=output, stderr=subprocess.STDOUT)
    return process, ours


@contextlib.contextmanager
def _blocked_signals() -> Iterator[None]:
    """A child inherits the mask: no Ctrl-C can end it before it has switched its signals off."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, interrupts.SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _manner(code: int | None) -> str:
    if code is None:
        return "no longer answers"
    return f"was killed by signal {-code}" if code < 0 else f"ended in the middle (exit code {code})"


def _error(name: str, failed: Failed) -> Exception:
    """The same error on this side; a defect keeps its traceback, for log.txt."""
    kind = tree().get(failed.kind or "")
    if kind:
        return kind(failed.what, failed.why, failed.do)
    defect = RuntimeError(f"{name}: {failed.what}")
    defect.__cause__ = RuntimeError(failed.why)
    return defect
