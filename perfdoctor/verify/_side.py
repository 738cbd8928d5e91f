"""The two sides: a server that this command starts, or one that is up already."""

from __future__ import annotations

import contextlib
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from perfdoctor.errors import ModelError, NoRoom, PerfdoctorError, ServerDied
from perfdoctor.local.patient import LAUNCH, Patient
from perfdoctor.local.switches import _choose
from perfdoctor.model import SideName, Target, TriedSide

TAIL_LINES = 8
SPARE = 1.5  # times its weights is what a server takes while it loads; a guess
NO_ROOM_FOR_BOTH = "memory does not hold both sides: one is stopped before the other starts"
_NO_ROOM = re.compile(
    r"out of memory|OutOfMemory|not enough memory|cannot allocate memory|can't allocate memory|bad_alloc|"
    r"less than desired GPU memory|No available memory for the cache blocks",
    re.IGNORECASE,
)


class Side(Protocol):
    """`start` returns when it answers, and raises NoRoom where memory was what it lacked."""

    name: SideName
    tried: TriedSide

    @property
    def patient(self) -> Patient | None: ...
    @property
    def up(self) -> bool: ...
    @property
    def owned(self) -> bool: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def target(self, base: Target) -> Target: ...
    def last_words(self) -> str: ...


@dataclass(slots=True)
class Log:
    """A file of a server's lines, and the last of them."""

    path: Path
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))

    def __call__(self, line: str) -> None:
        line = line.removeprefix("local server: ")
        self.tail.append(line)
        with contextlib.suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def words(self) -> str:
        return " | ".join(self.tail) or "it printed nothing"


def is_no_room(text: str) -> bool:
    return bool(_NO_ROOM.search(text))


@dataclass(slots=True)
class Child:
    """A process that serves a local model. Sides that differ in switches alone share one: `now` are those
    that it serves with."""

    model: str
    settings: Mapping[str, str]  # of the process, and of loading
    log: Log
    patient: Patient | None = None
    now: Mapping[str, str] | None = None

    @property
    def up(self) -> bool:
        return bool(self.patient and self.patient.server and self.patient.server.alive())

    def start(self) -> None:
        self.patient, self.now = Patient(self.model, self.settings), None
        self.log.tail.clear()
        self.patient.start(self.log)

    def use(self, switches: Mapping[str, str]) -> float:
        """Seconds of compiling."""
        assert self.patient
        compile_s = self.patient.use(switches)
        self.now = switches
        return compile_s

    def stop(self) -> None:
        if self.patient:
            self.patient.stop()


@dataclass(slots=True)
class LocalSide:
    """A local model with these settings."""

    name: SideName
    settings: Mapping[str, str]
    child: Child
    tried: TriedSide = field(default_factory=TriedSide)
    owned: bool = True

    def __post_init__(self) -> None:
        self.tried = TriedSide(settings=dict(self.settings))

    @property
    def patient(self) -> Patient | None:
        return self.child.patient

    @property
    def up(self) -> bool:
        return self.child.up and self.child.now == self._switches

    @property
    def _switches(self) -> dict[str, str]:
        return {name: value for name, value in self.settings.items() if name not in LAUNCH}

    def start(self) -> None:
        began_s = time.monotonic()
        try:
            if not self.child.up:
                self.child.start()
            compile_s = self.child.use(self._switches)
        except ModelError as error:
            killed = error.what == "the model server was killed while it started"
            if killed or is_no_room(f"{error.what} {error.why}"):
                raise NoRoom(
                    f"there is not enough memory for the {self.name} side", error.why, error.do
                ) from error
            raise
        if self.tried.start_s is None:
            took_s = time.monotonic() - began_s
            self.tried = msgspec.structs.replace(self.tried, start_s=took_s, compile_s=compile_s or None)

    def stop(self) -> None:
        self.child.stop()

    def target(self, base: Target) -> Target:
        return msgspec.structs.replace(
            base, endpoint=None, model=self.child.model, options=dict(self.settings)
        )

    def last_words(self) -> str:
        return self.child.log.words()


def of_process(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that need a process of their own."""
    live = {name for name, switch in _choose.known().items() if switch.live}
    return {name: value for name, value in settings.items() if name not in live}


@dataclass(slots=True)
class EndpointSide:
    """A server that somebody else started, and that stays up."""

    name: SideName
    endpoint: str
    tried: TriedSide = field(default_factory=TriedSide)
    patient: None = None
    up: bool = True
    owned: bool = False

    def __post_init__(self) -> None:
        self.tried = TriedSide(endpoint=self.endpoint)

    def start(self) -> None:
        """It is up, or its first request will tell."""

    def stop(self) -> None:
        """It is not ours."""

    def target(self, base: Target) -> Target:
        return msgspec.structs.replace(base, endpoint=self.endpoint, options={})

    def last_words(self) -> str:
        return "its log is where it was started"


def died(side: Side, error: PerfdoctorError) -> PerfdoctorError:
    """The error of a run, told as that of its side where the server is gone."""
    if not side.owned or side.up:
        return error
    return ServerDied(
        f"the {side.name} side died while it was tried",
        f"Its log ends: {side.last_words()}",
        "read its whole log, and `dmesg | grep -i oom`",
    )


def shares(one: Side, other: Side) -> bool:
    """Whether both are the same process, by turns."""
    return isinstance(one, LocalSide) and isinstance(other, LocalSide) and one.child is other.child


def has_room(other: Side) -> bool:
    """For as much again as the other side holds, where that is known; the kernel would not ask, but kill.

    A GPU says by itself when it is full.
    """
    facts = other.patient.server.facts if other.patient and other.patient.server else None
    if facts is None or not facts.weights_bytes or not (facts.device or "").startswith("cpu"):
        return True
    import psutil

    return bool(psutil.virtual_memory().available > SPARE * facts.weights_bytes)


@dataclass(slots=True)
class Bench:
    """Both sides. `together`: both may be up; it becomes False when there is no memory for that."""

    sides: Sequence[Side]
    together: bool = True
    notes: list[str] = field(default_factory=list)

    def side(self, name: SideName) -> Side:
        return next(side for side in self.sides if side.name == name)

    def use(self, name: SideName) -> tuple[Side, bool]:
        """The side, up; and whether its process was started just now."""
        side = self.side(name)
        if side.up:
            return side, False
        other = self.side("after" if name == "before" else "before")
        if shares(side, other) and other.up:
            side.start()
            return side, False
        if self.together and other.up and not has_room(other):
            self.together = False
            self.notes.append(NO_ROOM_FOR_BOTH)
        if not self.together:
            other.stop()
        try:
            side.start()
        except NoRoom:
            if not (self.together and other.up and other.owned and not shares(side, other)):
                raise
            self.together = False
            self.notes.append(NO_ROOM_FOR_BOTH)
            other.stop()
            side.stop()
            side.start()
        return side, True

    def stop(self) -> None:
        for side in self.sides:
            side.stop()
