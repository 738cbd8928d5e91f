"""The two consoles and the styles named by intent. Results go to `out`, everything else to `err`.

Talk may get lost, when its terminal is closed for example, without harm to the run. A result may not: what
keeps it from being written is an error, or ReaderGone.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import functools
import os
import sys
import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.theme import Theme

from perfdoctor.errors import DiskFull, PerfdoctorError
from perfdoctor.literal import one_line

STYLES = {
    "hit": "red",
    "unknown": "yellow",
    "clear": "green",
    "hint": "cyan",
    "muted": "dim",
    "strong": "bold",
}
WIDTH = 80
LONGEST = 800  # characters of one line of an error: a name from outside may have any length

_colour = True


class ReaderGone(Exception):
    """The reader of stdout, `head` for example, has had enough."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the process with exit code 1."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def prepare_streams() -> None:
    """Make sure that there are streams, and that no character can fail to be written to them."""
    codecs.register_error("perfdoctor", _spell)
    for fd in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.fstat(fd)
            continue
        os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
    for name, fd in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(fd, "w", closefd=False))
        if hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="perfdoctor")


def _spell(error: UnicodeError) -> tuple[str, int]:
    """What to write for a character that the stream's encoding lacks."""
    assert isinstance(error, UnicodeEncodeError)
    if error.object[error.start] == "µ":
        return "u", error.start + 1
    text, end = codecs.backslashreplace_errors(error)
    return str(text), end


def disable_colour() -> None:
    """`--no-color`: for the rest of the process, and for consoles already made."""
    global _colour
    _colour = False
    out.cache_clear()
    err.cache_clear()


def _console(stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH
    return _Console(
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


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Around everything that writes results to stdout."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        raise DiskFull(
            f"cannot write the result to stdout: {error.strerror}",
            "It goes to a full disk or to a device that takes no data.",
            "the run is kept; show it again with: perfdoctor report latest",
        ) from error


def say(text: str) -> None:
    """A note to the person watching, on stderr. The text is literal, no markup."""
    with contextlib.suppress(OSError):
        err().print(one_line(text), markup=False, style="muted", soft_wrap=True)


def print_error(error: PerfdoctorError) -> None:
    """The three lines of an error: what, why, do. A terminal's lines are broken between words; what is to be
    done only between its parts, since commands are copied from it."""
    lines = (("perfdoctor: ", error.what, "hit"), ("  ", error.why, ""), ("  Do: ", error.do, "hint"))
    with contextlib.suppress(OSError):
        for label, text, style in lines:
            if text:
                line = label + _shortened(one_line(text))
                shown = _broken(line, "; " if label.endswith("Do: ") else " ")
                err().print(shown, markup=False, style=style, soft_wrap=True)


def _broken(line: str, between: str) -> str:
    if not err().is_terminal or len(line) <= err().width:
        return line
    if between != " ":
        return line.replace(between, f"{between.rstrip()}\n      ")
    indent = line[: len(line) - len(line.lstrip())] or "  "
    return textwrap.fill(
        line, err().width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ... ({len(text):,} characters)"
