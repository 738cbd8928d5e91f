"""What a person sees while a run goes on: one live line on a terminal, a plain line per phase elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Protocol

from rich.cells import cell_len, set_cell_size

from perfdoctor import console, units
from perfdoctor.literal import one_line

MARGIN = 3  # columns kept free: a terminal prints ^C where the line ends
PULSE_S = 0.5  # of the seconds shown while a phase tells nothing else
CLEAR_REST = "\x1b[K"  # of the line; after the text, not before it, so that nothing flickers


class Counts(Protocol):
    """The driver's counters that a live line shows."""

    @property
    def done(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def elapsed_s(self) -> float: ...
    @property
    def workers(self) -> int: ...


class Watch:
    """Tells what has begun and how far it is. Quiet when `quiet`; plain lines when stderr is no terminal.

    The live line is written by hand: it costs the thread that measures next to nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        err = console.err()
        self._live = err.is_terminal and not err.is_dumb_terminal
        self._title = ""
        self._drawn = False
        self._lock = threading.Lock()
        self._told = threading.Event()  # the phase tells something itself, or is over

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self, title: str, expect: str = "") -> None:
        """A phase starts; `expect` says how long it will take."""
        self.end()
        self._title = title
        text = f"{title} ({expect})" if expect else title
        if self._quiet:
            return
        if not self._live:
            console.say(text)
            return
        self._draw(text)
        self._told = threading.Event()
        threading.Thread(target=self._pulse, args=(text, self._told), daemon=True).start()

    def tick(self, counts: Counts) -> None:
        if self._quiet or not self._live:
            return
        self._told.set()
        rate = counts.tokens / counts.elapsed_s if counts.elapsed_s else None
        failed = f", {counts.failed} failed" if counts.failed else ""
        workers = f", {counts.workers} processes" if counts.workers > 1 else ""
        self._draw(
            f"{self._title}: {counts.done} done{failed}, {counts.in_flight} open, "
            f"{units.number(rate)} tok/s, {counts.elapsed_s:.0f} s{workers}"
        )

    def note(self, text: str) -> None:
        self._erase()
        if not self._quiet:
            console.say(text)

    def end(self) -> None:
        self._told.set()
        self._erase()

    def _pulse(self, text: str, told: threading.Event) -> None:
        began_s = time.monotonic()
        while not told.wait(PULSE_S):
            self._draw(f"{text}: {time.monotonic() - began_s:.0f} s", told)

    def _draw(self, text: str, unless: threading.Event | None = None) -> None:
        with self._lock:
            if unless is None or not unless.is_set():
                self._drawn = True
                self._write("\r" + fitted(one_line(text), console.err().width - MARGIN) + CLEAR_REST)

    def _erase(self) -> None:
        with self._lock:
            if self._drawn:
                self._drawn = False
                self._write("\r" + CLEAR_REST)

    def _write(self, text: str) -> None:
        """A terminal that is gone costs the line, not the run."""
        with contextlib.suppress(OSError, ValueError):
            console.err().file.write(text)
            console.err().file.flush()


def fitted(text: str, width: int) -> str:
    """Cut to `width` terminal cells, so that the line never wraps."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 3)) + "..."[: max(0, width)]
