"""What the child tells its parent: one JSON line a message, over a pipe. For both ends; knows no torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from perfdoctor.clock import Clock
from perfdoctor.errors import ModelError
from perfdoctor.model import Record, Sample, TargetFacts


class Reading(Record, frozen=True, kw_only=True, tag="sample", tag_field="kind"):
    sample: Sample


class Known(Record, frozen=True, kw_only=True, tag="facts", tag_field="kind"):
    """What is known so far about the target; sent again when more is known."""

    facts: TargetFacts


class Ready(Record, frozen=True, kw_only=True, tag="ready", tag_field="kind"):
    """Requests are answered at facts.url from now on. `calibration` holds ceilings in bytes/s."""

    facts: TargetFacts
    calibration: dict[str, float | None] = msgspec.field(default_factory=dict)


class Failed(Record, frozen=True, kw_only=True, tag="failed", tag_field="kind"):
    """The three lines of a ModelError."""

    what: str
    why: str = ""
    do: str = ""


Message = Reading | Known | Ready | Failed


def decode_lines(stream: BinaryIO) -> Iterator[Message]:
    """Messages until the other end closes; a torn last line of a killed child is dropped."""
    decoder = msgspec.json.Decoder(Message)
    for line in stream:
        if line.endswith(b"\n"):
            yield decoder.decode(line)


class Channel:
    """The child's end. Every method may be called from any thread; a vanished parent is not an error here."""

    def __init__(self, fd: int, clock: Clock) -> None:
        self._fd, self.clock = fd, clock
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        line = memoryview(msgspec.json.encode(message) + b"\n")
        with self._lock:
            try:
                while line:
                    line = line[os.write(self._fd, line) :]
            except BrokenPipeError:
                return  # the parent is gone; the lifeline ends this process (see server.py)

    def sample(
        self, probe: str, values: dict[str, float | None], labels: dict[str, str] | None = None
    ) -> None:
        """A reading stamped now."""
        reading = Sample(at_s=self.clock.now(), probe=probe, values=values, labels=labels or {})
        self.send(Reading(sample=reading))

    def absent(self, probe: str, why: str) -> None:
        """Says once that a probe can have no values here."""
        self.send(Reading(sample=Sample(at_s=self.clock.now(), probe=probe, status="absent", why=why)))

    def failed(self, error: ModelError) -> None:
        self.send(Failed(what=error.what, why=error.why, do=error.do))
