"""Markdown on a terminal: paragraphs are filled anew, code and tables stay as they are.

The source stays readable as it is, so nothing is rendered: no boxes, no hidden links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from perfdoctor.literal import visible
from perfdoctor.reports._columns import Page, words

_ITEM = re.compile(r" {0,3}([-*]|\d+\.) ")
_FIELD = re.compile(r"[A-Z][a-z ]{1,18}: ")  # `Risk: ...` begins a line of its own
_VERBATIM = re.compile(r"    |\t|#|\||>")


def blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """(`text`, a paragraph or list item on one line) or (`line`, a line to leave alone)."""
    paragraph: list[str] = []
    fenced = False
    for line in visible(markdown).splitlines():
        fence = line.lstrip().startswith("```")
        alone = fence or fenced or not line.strip() or (not paragraph and _VERBATIM.match(line))
        if paragraph and (alone or _ITEM.match(line) or _FIELD.match(line) or line.startswith("#")):
            yield "text", " ".join(paragraph)
            paragraph = []
            alone = alone or line.startswith("#")
        if alone:
            yield "line", line.rstrip()
        else:
            paragraph.append(line.rstrip() if not paragraph else line.strip())
        fenced ^= fence
    if paragraph:
        yield "text", " ".join(paragraph)


def show(page: Page, markdown: str) -> None:
    """List items hang; headings stand out."""
    for kind, text in blocks(markdown):
        if kind == "line":
            page.emit(Text(text, "strong" if text.startswith("#") else ""))
            continue
        item = _ITEM.match(text)
        if item is None:
            page.indented(text, len(text) - len(text.lstrip()))
            continue
        hang = item.end()
        for number, line in enumerate(words(text[hang:]).wrap(page.console, max(10, page.width - hang))):
            page.emit(Text(text[:hang] if number == 0 else " " * hang) + line)
