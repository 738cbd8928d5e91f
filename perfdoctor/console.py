"""The two consoles and the styles named by intent. Results go to `out`, everything else to `err`."""

from __future__ import annotations

import functools
import sys

from rich.console import Console
from rich.theme import Theme

from perfdoctor.errors import PerfdoctorError

STYLES = {
    "hit": "red",
    "unknown": "yellow",
    "clear": "green",
    "hint": "cyan",
    "muted": "dim",
    "strong": "bold",
}
WIDTH = 80

_colour = True


def disable_colour() -> None:
    """`--no-color`: for the rest of the process, and for consoles already made."""
    global _colour
    _colour = False
    out.cache_clear()
    err.cache_clear()


def _console(stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH
    return Console(
        stderr=stderr,
        theme=Theme(STYLES, inherit=True),
        highlight=False,
        emoji=False,
        no_color=None if _colour else True,
        width=width,
    )


@functools.cache
def out() -> Console:
    return _console(stderr=False)


@functools.cache
def err() -> Console:
    return _console(stderr=True)


def say(text: str) -> None:
    """A note to the person watching, on stderr. The text is literal, no markup."""
    err().print(text, markup=False, style="muted", soft_wrap=True)


def print_error(error: PerfdoctorError) -> None:
    """The three lines of an error: what, why, do."""
    console = err()
    console.print(f"perfdoctor: {error.what}", markup=False, style="hit", soft_wrap=True)
    if error.why:
        console.print(f"  {error.why}", markup=False, soft_wrap=True)
    if error.do:
        console.print(f"  Do: {error.do}", markup=False, style="hint", soft_wrap=True)
