"""What the parent and its driver processes say to each other, and how it is framed on their socket.

A frame is a length of four bytes and one message in msgpack: a record costs its worker a seventh of what its
JSON would (1 us for a hundred tokens). The secret travels in Orders, never in an argument or a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct

import msgspec

from perfdoctor.loadgen.refusal import Verdicts
from perfdoctor.loadgen.stage import Share, Snapshot, Stage
from perfdoctor.model import ClientFacts, Load, Phase, RequestRecord, Target

_LENGTH = struct.Struct(">I")


class _Message(msgspec.Struct, frozen=True, tag=True):
    pass


class Orders(_Message, frozen=True):
    """The first message: all that a Driver is made of. `clock`: (zero_ns, wall_zero)."""

    target: Target
    load: Load
    clock: tuple[int, str]
    secret: str | None
    share: Share


class Prepare(_Message, frozen=True):
    """Make ready for a stage: its schedule takes time, and differently much in each process."""

    stage: Stage


class Begin(_Message, frozen=True):
    """Drive that stage from this instant on, the same for all workers."""

    start_ns: int


class Stop(_Message, frozen=True):
    """The same as Driver.request_stop."""


class Ready(_Message, frozen=True):
    """The worker has taken its orders and can begin. `verdicts`, with nothing noted, judge this target."""

    verdicts: Verdicts


class Prepared(_Message, frozen=True):
    pass


class Told(_Message, frozen=True):
    """Requests that have ended since the last word, and where the stage stands."""

    records: tuple[RequestRecord, ...]
    snapshot: Snapshot


class Ended(_Message, frozen=True):
    """A stage is over. `over`: the worker will send nothing in later ones either."""

    phase: Phase
    facts: ClientFacts
    notes: tuple[str, ...]
    over: bool


class Failed(_Message, frozen=True):
    """The worker cannot go on. `kind`: an id of errors.tree(); None: a defect, whose traceback is `why`."""

    kind: str | None
    what: str
    why: str = ""
    do: str = ""


ToWorker = Orders | Prepare | Begin | Stop
FromWorker = Ready | Prepared | Told | Ended | Failed
_DECODER = msgspec.msgpack.Decoder(ToWorker | FromWorker)


class Channel:
    """One end of the socket. Writing never blocks; what the other end does not read waits in memory."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, message: ToWorker | FromWorker) -> None:
        """Nothing is sent to one who is gone."""
        if not self._writer.is_closing():
            frame = msgspec.msgpack.encode(message)
            self._writer.write(_LENGTH.pack(len(frame)) + frame)

    async def receive(self) -> ToWorker | FromWorker | None:
        """None when the other end is gone; half a message of its is lost."""
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            message: ToWorker | FromWorker = _DECODER.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return message

    async def close(self) -> None:
        """After the other end has taken what was sent, or is gone."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
