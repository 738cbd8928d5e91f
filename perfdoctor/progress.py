"""What a person sees while a run goes on: one live line on a terminal, a plain line per phase elsewhere."""

from __future__ import annotations

from typing import Protocol

from rich.status import Status

from perfdoctor import console, units


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


class Watch:
    """Tells what has begun and how far it is. Quiet when `quiet`; plain lines when stderr is no terminal."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._status: Status | None = None
        self._title = ""

    def begin(self, title: str, expect: str = "") -> None:
        """A phase starts; `expect` says how long it will take."""
        self.end()
        self._title = title
        text = f"{title} ({expect})" if expect else title
        if self._quiet:
            return
        if console.err().is_terminal:
            self._status = console.err().status(text, spinner="line")
            self._status.start()
        else:
            console.say(text)

    def tick(self, counts: Counts) -> None:
        if self._status:
            rate = counts.tokens / counts.elapsed_s if counts.elapsed_s else None
            failed = f", {counts.failed} failed" if counts.failed else ""
            self._status.update(
                f"{self._title}: {counts.done} done{failed}, {counts.in_flight} open, "
                f"{units.number(rate)} tok/s, {units.seconds(counts.elapsed_s)}"
            )

    def note(self, text: str) -> None:
        if not self._quiet:
            console.say(text)

    def end(self) -> None:
        if self._status:
            self._status.stop()
            self._status = None
