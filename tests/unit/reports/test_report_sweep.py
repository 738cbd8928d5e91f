"""The table of a sweep on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from perfdoctor.model import Knee, Sweep, SweepLevel, Trust, WithinSlo
from perfdoctor.reports._sweep import print_sweep


def level(users: float, **changes) -> SweepLevel:
    """As wide as numbers come."""
    fields = {
        "run": f"01-c{users:g}",
        "why": "doubled",
        "state": "complete",
        "requests": 1000,
        "failed": 999,
        "requests_per_s": 123.4,
        "output_tokens_per_s": 12_345.0,
        "ttft_p50_s": 0.0123,
        "ttft_p95_s": 0.0845,
        "tpot_p50_s": 0.0123,
        "e2e_p95_s": 0.0845,
        "trust": Trust(status="degraded", reasons=("read lag p99 is 9 ms",)),
        "slo": "not_decided",
    }
    return SweepLevel(level=users, **(fields | changes))


def shown(found: Sweep, width: int = 80) -> str:
    buffer = io.StringIO()
    print_sweep(Console(file=buffer, width=width, no_color=True, highlight=False), found)
    return buffer.getvalue()


KNEE = Knee(status="found", level=64, between=(32, 64), requests_per_s=80, method="M", source="S", reason="R")
WITHIN = WithinSlo(
    status="found", level=32, requests_per_s=70, missed_at=64, reason="at 64 users it is missed"
)
SWEEP = Sweep(
    state="complete",
    slo_text="ttft_p95<80ms",
    levels=(level(128), level(64, repeated=True), level(64), level(32)),
    knee=KNEE,
    slo=WITHIN,
    ended="the SLO is missed at 128 users",
)


def test_the_widest_table_fits_80_columns():
    """All ten columns beside each other, a level a line, in ascending order, each once."""
    lines = shown(SWEEP).splitlines()
    rows = [line.split() for line in lines if line[:5].strip().isdigit()]

    assert 80 >= max(map(len, lines))
    assert ["32", "64", "128"] == [row[0] for row in rows]
    assert "unsure" == rows[0][-1]


def test_columns_without_a_value_are_left_out():
    """Plain HTTP has no tokens and no first one."""
    plain = level(1, output_tokens_per_s=None, ttft_p50_s=None, ttft_p95_s=None, tpot_p50_s=None, slo=None)
    text = shown(Sweep(state="complete", levels=(plain,)))

    assert not any(word in text for word in ("TTFT", "TPOT", "tok/s", "SLO"))
    assert "req/s" in text


def test_what_the_levels_say_together():
    """Knee with its method and the gap around it; the load within the SLO; why it ended."""
    text = " ".join(shown(SWEEP).split())

    assert "Knee 64 users, 80 requests/s: R; between 32 and 64 nothing was run M (S)" in text
    assert "SLO ttft_p95<80ms: up to 32 users (70 requests/s); at 64 users it is missed" in text
    assert "Ended the SLO is missed at 128 users" in text


def test_a_level_that_failed_says_why():
    """Its numbers are missing, not zero."""
    dead = SweepLevel(level=8, run="02-c8", why="given", state="failed", error="the server died")
    text = shown(Sweep(state="interrupted", levels=(level(4), dead)))

    assert "8 users: the server died" in text
    assert "interrupted: what is shown" in text
