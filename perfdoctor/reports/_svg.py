"""Draws SVG with pure functions: a linear scale, round ticks, paths, escaped elements.

Colours and fonts are CSS classes of the page, so one drawing serves the light and the dark theme.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfdoctor.literal import one_line

Point = tuple[float, float | None]  # x and y; y None breaks the line


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low..high` to pixels `start..end`; an empty domain maps to `start`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return self.start
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def ticks(low: float, high: float, most: int = 6) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten inside `low..high`, at most `most` of them."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return (low,)
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    fine = 1e-9 * (high - low)
    for step in (power * m for m in (1, 2, 5, 10, 20, 50)):
        first, last = math.ceil((low - fine) / step), math.floor((high + fine) / step)
        if last - first < most:
            break
    return tuple(k * step for k in range(first, last + 1))


def round_up(value: float) -> float:
    """The next tick at or above a positive value: where an axis may end."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= value * (1 - 1e-9))


def pixel(value: float) -> str:
    """A coordinate to a tenth of a pixel, in as few characters as possible."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def element(tag: str, content: str = "", /, **attributes: str | float) -> str:
    """One element. `content` is markup; attributes are escaped, `class_` and `_` become `class` and `-`."""
    parts = [f"<{tag}"]
    for name, value in attributes.items():
        shown = value if isinstance(value, str) else pixel(value)
        parts.append(f' {name.rstrip("_").replace("_", "-")}="{html.escape(one_line(shown))}"')
    return "".join(parts) + (f">{content}</{tag}>" if content else "/>")


def label(text: str, x: float, y: float, class_: str = "t", anchor: str = "start") -> str:
    return element("text", html.escape(one_line(text)), x=x, y=y, class_=class_, text_anchor=anchor)


def title(text: str) -> str:
    """What a pointer that rests on the parent element sees, and a screen reader says."""
    return element("title", html.escape(one_line(text)))


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path(points: Iterable[Point]) -> str:
    """The `d` of a broken line in pixel coordinates."""
    parts, pen = [], "M"
    for x, y in points:
        if y is None:
            pen = "M"
            continue
        parts.append(f"{pen}{pixel(x)} {pixel(y)}")
        pen = "L"
    return "".join(parts)


def picture(width: float, height: float, description: str, body: Sequence[str], class_: str = "") -> str:
    """The whole drawing, which scales with its container and names itself to a screen reader."""
    return element(
        "svg",
        title(description) + "".join(body),
        viewBox=f"0 0 {pixel(width)} {pixel(height)}",
        class_=class_,
        role="img",
        aria_label=description,
    )
