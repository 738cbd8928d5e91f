"""The three lines of an error, for a file and for a narrow terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.theme import Theme

from perfdoctor import console
from perfdoctor.errors import UsageError

ERROR = UsageError(
    "the server at http://127.0.0.1:8000 answers nothing",
    "It is stuck, or so busy that it does not come to answer anybody.",
    "look at the log of the server that is asked; or: curl -v http://127.0.0.1:8000/v1/models",
)


def printed(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> list[str]:
    text = io.StringIO()
    made = Console(
        file=text,
        force_terminal=terminal,
        width=40,
        theme=Theme(console.STYLES),
        highlight=False,
        no_color=True,
    )
    monkeypatch.setattr(console, "err", lambda: made)
    console.print_error(ERROR)
    return [line.replace("\x1b[0m", "") for line in text.getvalue().splitlines()]


def test_a_file_gets_three_lines(monkeypatch: pytest.MonkeyPatch):
    """Of any width: they are searched and cut by programs."""
    assert 3 == len(printed(monkeypatch, terminal=False))


def test_a_terminal_gets_whole_words(monkeypatch: pytest.MonkeyPatch):
    """Broken between words and indented; a command stays on one line, to be copied."""
    lines = printed(monkeypatch, terminal=True)

    assert ["perfdoctor: the server at", "  http://127.0.0.1:8000 answers nothing"] == lines[:2]
    assert [
        "  Do: look at the log of the server that is asked;",
        "      or: curl -v http://127.0.0.1:8000/v1/models",
    ] == lines[-2:]
