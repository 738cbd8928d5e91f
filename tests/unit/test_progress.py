"""The live line."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text
from rich.theme import Theme

from perfdoctor import console
from perfdoctor.loadgen.driver import Snapshot
from perfdoctor.progress import Watch, fitted


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(Terminal):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def watch_on(
    file: io.StringIO, monkeypatch: pytest.MonkeyPatch, width: int = 40, term: str = "xterm"
) -> Watch:
    environment = {"TERM": term}
    made = Console(
        file=file,
        force_terminal=file.isatty(),
        width=width,
        _environ=environment,
        theme=Theme(console.STYLES),
    )
    monkeypatch.setattr(console, "err", lambda: made)
    return Watch()


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("fits", 4, "fits"), ("does not", 7, "does..."), ("模型模型", 7, "模型..."), ("no", 0, "")],
)
def test_a_line_is_cut_to_the_cells_of_the_terminal(text: str, width: int, expected: str):
    """A longer one would wrap, and every redraw would leave a line behind."""
    assert expected == fitted(text, width)


def test_a_terminal_gets_one_line_that_is_rewritten_and_gone_at_the_end(monkeypatch: pytest.MonkeyPatch):
    """Names from outside are literal: no markup, no line feed, no escape sequence."""
    file = Terminal()
    watch = watch_on(file, monkeypatch, width=200)

    with pytest.raises(ValueError, match="a failure"), watch:
        watch.begin("Loading [/bold] a\nb \x1b[2J", "soon")
        watch.tick(Snapshot(done=3, failed=1, in_flight=2, tokens=50, elapsed_s=2.0))
        watch.tick(Snapshot(done=4, in_flight=1, tokens=60, elapsed_s=3.0, workers=2))
        raise ValueError("a failure")

    text = file.getvalue()
    assert "Loading [/bold] a b \\x1b[2J (soon)" in text
    assert "3 done, 1 failed, 2 open, 25 tok/s, 2 s\x1b" in text
    assert "4 done, 1 open, 20 tok/s, 3 s, 2 processes\x1b" in text
    assert "\n" not in text
    assert text.endswith("\r\x1b[K")


@pytest.mark.parametrize(("terminal", "term"), [(False, "xterm"), (True, "dumb")])
def test_without_a_real_terminal_each_phase_is_a_plain_line(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, term: str
):
    """A log file or an editor's shell gets no control characters."""
    file = Terminal() if terminal else io.StringIO()
    watch = watch_on(file, monkeypatch, term=term)

    watch.begin("Loading", "soon")
    watch.tick(Snapshot())
    watch.end()

    assert "Loading (soon)\n" == Text.from_ansi(file.getvalue().rstrip()).plain + "\n"


def test_a_terminal_that_is_gone_harms_nobody(monkeypatch: pytest.MonkeyPatch):
    """A closed window must not cost the run."""
    watch = watch_on(Gone(), monkeypatch)

    watch.begin("Loading")
    watch.tick(Snapshot())
    watch.note("a note")
    watch.end()
