"""One driver process of several: takes its orders from the parent by a socket, and reports to it alone.

Not for people: fleet.py starts it as `python -m perfdoctor.loadgen.worker`, with the socket as its stdin.
Signals of the terminal are the parent's business; the end of the parent is the end of this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import traceback
from dataclasses import replace

from perfdoctor import interrupts
from perfdoctor.clock import Clock
from perfdoctor.errors import PerfdoctorError
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver
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
)
from perfdoctor.loadgen.stage import Stage
from perfdoctor.model import RequestRecord

TELL_S = 0.1  # a killed worker takes this much of its requests with it
MOST_RECORDS = 200  # in a message: packing more would hold up the reads of this process
PR_SET_PDEATHSIG = 1  # prctl(2)


class Outbox:
    """Collects the records of ended requests and sends them on in batches."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._records: list[RequestRecord] = []
        self.driver: Driver | None = None

    def append(self, record: RequestRecord) -> None:
        self._records.append(record)
        if len(self._records) >= MOST_RECORDS:
            self.flush()

    def flush(self) -> None:
        if self.driver:
            records, self._records = tuple(self._records), []
            self._channel.send(Told(records, self.driver.snapshot()))

    async def flush_forever(self) -> None:
        while True:
            await asyncio.sleep(TELL_S)
            self.flush()


async def work(channel: Channel) -> None:
    """Obey until the parent closes its end."""
    orders = await channel.receive()
    if not isinstance(orders, Orders):
        return
    outbox = Outbox(channel)
    try:
        driver = Driver(
            orders.target, orders.load, Clock(*orders.clock), outbox.append, orders.secret, orders.share
        )
        async with driver:
            outbox.driver = driver
            channel.send(Ready(driver.verdicts))
            telling = asyncio.create_task(outbox.flush_forever())
            await _obey(channel, driver, outbox)
            telling.cancel()
    except PerfdoctorError as error:
        channel.send(Failed(error.name(), error.what, error.why, error.do))
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        channel.send(Failed(None, what, traceback.format_exc()))


async def _obey(channel: Channel, driver: Driver, outbox: Outbox) -> None:
    """Raises what a stage raised."""
    running: asyncio.Task[None] | None = None
    stage, due_s = Stage("warmup", 1), list[float]()
    listening = asyncio.create_task(channel.receive())
    try:
        while True:
            await asyncio.wait(
                {listening, *([running] if running else [])}, return_when=asyncio.FIRST_COMPLETED
            )
            if running and running.done():
                running = running.result()
            if not listening.done():
                continue
            message = listening.result()
            if isinstance(message, Prepare):
                stage, due_s = message.stage, driver.plan(message.stage)
                channel.send(Prepared())
            elif isinstance(message, Begin):
                begun = replace(stage, start_ns=message.start_ns)
                running = asyncio.create_task(_run(channel, driver, outbox, begun, due_s))
            elif isinstance(message, Stop):
                driver.request_stop()
            else:
                return
            listening = asyncio.create_task(channel.receive())
    finally:
        listening.cancel()
        if running:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


async def _run(channel: Channel, driver: Driver, outbox: Outbox, stage: Stage, due_s: list[float]) -> None:
    phase = await driver.run_stage(stage, due_s)
    outbox.flush()
    channel.send(Ended(phase, driver.client_facts(), tuple(driver.notes), driver.over))


async def _main() -> None:
    reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=0))
    channel = Channel(reader, writer)
    await work(channel)
    await channel.close()


def main() -> None:
    """The signals came in blocked, so that none can end this process before it ignores them."""
    interrupts.ignore()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts.SIGNALS)
    die_with_parent()
    loop.run(_main())


def die_with_parent() -> None:
    """At once, even from an endless loop, on Linux. Elsewhere, and if the parent is gone already, the end of
    the socket says it."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    main()
