"""The body of `compare`."""

from __future__ import annotations

import sys

from perfdoctor import compare, console
from perfdoctor.compare import limits
from perfdoctor.errors import CannotJudge
from perfdoctor.model import Comparison

CROSSED = 1


def run(before: str, after: str, fail_on: str | None) -> Comparison:
    if fail_on:
        limits.parse(fail_on)  # a mistake in it is said before anything is read
    return compare.compare(compare.read_side(before), compare.read_side(after), fail_on)


def show(found: Comparison, form: str | None) -> None:
    from perfdoctor.reports import _comparison, json

    with console.writing():
        if form is None:
            _comparison.print_comparison(console.out(), found)
            return
        text = json.encode(found) if form == "json" else _comparison.markdown(found)
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def exit_code(found: Comparison) -> int:
    """1 where a limit is crossed for certain, 4 where one could not be decided; says which."""
    crossed = [(part.name, limit) for part in found.parts for limit in part.limits if limit.crossed]
    open_ = [(part.name, limit) for part in found.parts for limit in part.limits if limit.crossed is None]
    code = CROSSED if crossed else CannotJudge.exit_code if open_ else 0
    for name, limit in crossed or open_:
        where = f"{name}: " if name else ""
        console.say(f"Exit {code}: --fail-on {limit.text}: {where}{limit.reason}")
    return code
