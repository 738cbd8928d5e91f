"""Instants of lines, by the clock that wrote them."""

from __future__ import annotations

import pytest

from perfdoctor.logs import read_stamp


@pytest.mark.parametrize(
    ("line", "wall"),
    [
        ("time=2026-04-10T21:13:54.917+09:00 level=INFO", "2026-04-10T21:13:54.917000+09:00"),
        (
            "2026-05-01T23:13:20.749109057Z (EngineCore pid=1) INFO 05-01 21:13:20 [m.py]",
            "2026-05-01T23:13:20.749109+00:00",
        ),
        (
            "2026-05-01 19:08:34.712 | (EngineCore pid=187) INFO 05-01 17:08:34 [m.py]",
            "2026-05-01T19:08:34.712000",
        ),
        ("[2026-02-04 11:30:29 TP0] Load weight begin", "2026-02-04T11:30:29.000000"),
        (
            '[GIN] 2026/04/10 - 21:14:11 | 200 | 18.1s | 127.0.0.1 | POST "/api/chat"',
            "2026-04-10T21:14:11.000000",
        ),
    ],
)
def test_a_dated_stamp_is_a_wall_clock(line, wall):
    """With its offset only where the line has one; the first of several counts."""
    stamp = read_stamp(line)

    assert stamp is not None
    assert ("dated", wall) == (stamp.clock, stamp.wall)


@pytest.mark.parametrize(
    ("first", "last", "seconds"),
    [
        ("[2026-02-04 11:30:29] a", "[2026-02-04 11:31:30] b", 61.0),
        ("INFO 02-28 23:59:59 [m.py:1] a", "INFO 02-29 00:00:01 [m.py:1] b", 2.0),
        ("0.00.004.264 I srv init: a", "10.04.883.980 W srv stop: b", 604.879716),
    ],
)
def test_differences_are_seconds(first, last, seconds):
    """Of each clock: dated, without a year, since the process began."""
    a, b = read_stamp(first), read_stamp(last)

    assert a is not None
    assert b is not None
    assert a.clock == b.clock
    assert pytest.approx(seconds) == b.seconds - a.seconds


@pytest.mark.parametrize("line", ["INFO 13-40 12:00:00 x", "2026-99-99 00:00:00", "1.2.3.4 I x", "nothing"])
def test_no_stamp(line):
    """None where there is none, or none that exists."""
    assert read_stamp(line) is None
