"""Runs the command line within this process: as a person would, without the second that a start costs."""

from __future__ import annotations

import sys
from typing import NamedTuple

import pytest

from perfdoctor import console
from perfdoctor.cli import _main


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def perfdoctor(capsys: pytest.CaptureFixture[str], *words: str) -> Ended:
    """Exit code and what was printed. Signals stay as they are; a traceback fails the test."""
    before, sys.argv = sys.argv, ["perfdoctor", *words]
    for cached in (console.out, console.err):
        cached.cache_clear()
    capsys.readouterr()
    try:
        code = _main._run()
    finally:
        sys.argv = before
        for cached in (console.out, console.err):
            cached.cache_clear()
    out, err = capsys.readouterr()
    assert _main.INTERNAL != code and "Traceback" not in err, err
    return Ended(code, out, err)


def failed(code: int, ended: Ended, phrase: str = "") -> None:
    """The exit code, nothing on stdout, and an error of two or three lines: what, why, Do."""
    lines = ended.err.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("perfdoctor: ")), len(lines))

    assert code == ended.code, ended.err
    assert "" == ended.out
    assert 2 <= len(lines[begin:]) <= 3, ended.err
    assert lines[-1].startswith("  Do: "), ended.err
    assert phrase in ended.err, ended.err
