"""Lays out plain terminal text: labelled paragraphs and aligned columns, without boxes.

All text is literal: markup, emoji codes and escape sequences of foreign strings are shown, not obeyed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from perfdoctor.literal import one_line, visible

LABEL = 10  # columns of the left margin that holds `Trust`, `Finding` and the like
NARROW = 56  # below this width labels stand on their own and tables are stacked


@dataclass(frozen=True, slots=True)
class Page:
    """Where to print, and how wide."""

    console: Console

    @property
    def width(self) -> int:
        return max(20, self.console.width)

    @property
    def narrow(self) -> bool:
        return self.width < NARROW

    @property
    def margin(self) -> int:
        return 2 if self.narrow else LABEL

    def emit(self, line: Text) -> None:
        line.rstrip()
        self.console.print(line, soft_wrap=True)

    def gap(self) -> None:
        self.console.print()

    def paragraph(self, label: str, body: Text | str, style: str = "") -> None:
        """`label` in the margin, the wrapped body beside it (under it where the page is narrow)."""
        text = body if isinstance(body, Text) else words(body, style)
        head = styled(label, "strong")
        if self.narrow and label:
            self.emit(head)
            head = Text("")
        for number, line in enumerate(text.wrap(self.console, max(10, self.width - self.margin))):
            prefix = head if number == 0 else Text("")
            if cell_len(prefix.plain) >= self.margin:
                prefix = prefix + "  "
            prefix = prefix + " " * (self.margin - cell_len(prefix.plain))
            self.emit(prefix + line)

    def indented(self, text: str, indent: int, style: str = "") -> None:
        for line in words(text, style).wrap(self.console, max(10, self.width - indent)):
            self.emit(Text(" " * indent) + line)

    def command(self, label: str, text: str) -> None:
        """A command to copy: never wrapped by us, as a break would end up in the clipboard."""
        if self.narrow and label:
            self.emit(styled(label, "strong"))
            label = ""
        for line in visible(text).splitlines():
            self.emit(styled(f"{label:<{self.margin}}", "strong") + styled(line, "hint"))
            label = ""

    def table(self, rows: Sequence[Sequence[str]], right: Sequence[int], indent: int) -> None:
        """Aligned columns two spaces apart; columns in `right` are right-aligned.

        The last column moves to lines of its own when the page cannot hold it.
        """
        widths = [max(cell_len(one_line(row[i])) for row in rows) for i in range(len(rows[0]))]
        fits = indent + sum(widths) + 2 * (len(widths) - 1) <= self.width
        inline = len(widths) if fits else len(widths) - 1
        stacked = indent + sum(widths[:inline]) + 2 * (inline - 1) > self.width
        for row in rows:
            if stacked:
                self.indented(row[0], indent)
                self.indented("  ".join(row[1:inline]), indent + 2)
            else:
                cells = (align(row[i], widths[i], i in right) for i in range(inline))
                self.emit(Text(" " * indent + "  ".join(cells)))
            if not fits and row[-1]:
                self.indented(row[-1], indent + 2, "muted")


def styled(text: str, style: str) -> Text:
    """The style covers this text only; a Text's own style would spread to whatever is joined to it."""
    return Text.assemble((text, style))


def words(text: str, style: str = "") -> Text:
    return styled(one_line(text), style)


def align(text: str, width: int, right: bool = False) -> str:
    """Padded to `width` terminal cells, of which a CJK character takes two."""
    text = one_line(text)
    padding = " " * (width - cell_len(text))
    return padding + text if right else text + padding


def bar(share: float, width: int) -> str:
    """A share of `width` characters; anything above zero shows at least one."""
    share = min(1.0, max(0.0, share))
    filled = max(1, round(share * width)) if share > 0 else 0
    return "#" * filled + "." * (width - filled)
