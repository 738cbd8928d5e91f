"""Ctrl-C, SIGTERM and the SIGHUP of a closed terminal: all three end a run in the same orderly way.

Each raises KeyboardInterrupt in the main thread. What was ignored when the process began, as SIGHUP is under
nohup, stays ignored.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BOUNCE_S = 1.0  # timeout(1) sends two at once, and fingers bounce: the clean-up after the first goes on


class Interrupts:
    """The handler, and what has come in so far. `monotonic` is the clock of the bounce."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._heeded_s = float("-inf")
        self._shields = 0
        self._pending = False

    def handle(self, number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
        if not self.note():
            return
        if not self._shields:
            raise KeyboardInterrupt
        self._pending = True

    def note(self) -> bool:
        """A signal was heeded just now, here or elsewhere; False if it came too soon after the last."""
        now_s = self._monotonic()
        bounced = now_s - self._heeded_s < BOUNCE_S
        if not bounced:
            self._heeded_s = now_s
        return not bounced

    def install(self) -> None:
        for number in heeded():
            signal.signal(number, self.handle)

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Nothing is raised inside; what came in meanwhile is raised at the end, if the block succeeded."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._pending and not self._shields:
            self._pending = False
            raise KeyboardInterrupt


def ignore() -> None:
    """At the very end: the exit code is decided, and a late Ctrl-C must not replace it."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def heeded() -> tuple[signal.Signals, ...]:
    """The signals that nobody has switched off."""
    return tuple(number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)


@contextmanager
def kept() -> Iterator[None]:
    """Handlers as before at the end: an event loop leaves the system's defaults behind."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_installed = Interrupts()
install, note, shield = _installed.install, _installed.note, _installed.shield
