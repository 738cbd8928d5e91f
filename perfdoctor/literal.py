"""Makes foreign text safe to show: servers, models and file names may hold escape sequences.

A terminal obeys ESC, a reader is fooled by right-to-left overrides, and a lone surrogate cannot be written
as UTF-8. All of these become visible escapes; nothing is dropped silently.
"""

from __future__ import annotations


def visible(text: str) -> str:
    r"""Unprintable characters as `\x1b` and the like; newlines stay, other white space becomes a space."""
    if text.isprintable():
        return text
    return "".join(_character(c) for c in text)


def one_line(text: str) -> str:
    """The same on one line, with runs of white space closed up."""
    return " ".join(visible(text).split())


def _character(c: str) -> str:
    if c.isprintable() or c == "\n":
        return c
    if c.isspace():
        return " "
    return c.encode("unicode_escape").decode("ascii")
