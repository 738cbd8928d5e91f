"""A sweep on a terminal: a line per level, then what they say together."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from perfdoctor import units
from perfdoctor.model import Over, Sweep, SweepLevel
from perfdoctor.reports._columns import Page

# Two rows of headings, so that the whole fits 80 columns.
HEADS = (
    ("", ""), ("", "req/s"), ("", "tok/s"), ("TTFT", "p50"), ("TTFT", "p95"), ("TPOT", "p50"),
    ("e2e", "p95"), ("", "fail"), ("", "trust"), ("", "SLO"),
)  # fmt: skip
DECIDED = {"met": "met", "missed": "missed", "not_decided": "unsure", None: units.MISSING}
KNEE_STYLES = {"found": "clear", "not_reached": "unknown", "unknown": "unknown"}
SLO_STYLES = {"found": "clear", "not_reached": "clear", "none": "hit", "not_decided": "unknown"}


def print_sweep(console: Console, found: Sweep) -> None:
    """Levels in ascending order; one that was run again is shown once, by its last run."""
    page = Page(console)
    rows = sorted((row for row in found.levels if not row.repeated), key=lambda row: row.level)
    page.table(_table(found.over, rows), range(len(HEADS)), 0)
    _print_remarks(page, found.over, rows)
    page.gap()
    if found.state != "complete":
        page.paragraph("State", f"{found.state}: what is shown was measured until then", "unknown")
    if found.knee is not None:
        page.paragraph("Knee", knee_text(found), KNEE_STYLES[found.knee.status])
        page.paragraph("", f"{found.knee.method} ({found.knee.source})", "muted")
    if found.slo is not None:
        page.paragraph("SLO", slo_text(found), SLO_STYLES[found.slo.status])
    if found.state == "complete":
        page.paragraph("Ended", found.ended)
    for note in found.notes:
        page.paragraph("Note", note)


def _table(over: Over, rows: Sequence[SweepLevel]) -> list[tuple[str, ...]]:
    """Without columns in which no level has a value."""
    first = "rate/s" if over == "rate" else "users"
    table = [
        tuple(head[0] for head in HEADS),
        (first, *(head[1] for head in HEADS[1:])),
        *(_cells(row) for row in rows),
    ]
    kept = [i for i in range(len(HEADS)) if i == 0 or any(line[i] != units.MISSING for line in table[2:])]
    return [tuple(line[i] for i in kept) for line in table]


def _cells(row: SweepLevel) -> tuple[str, ...]:
    return (
        f"{row.level:g}",
        units.number(row.requests_per_s),
        units.number(row.output_tokens_per_s),
        units.seconds(row.ttft_p50_s),
        units.seconds(row.ttft_p95_s),
        units.seconds(row.tpot_p50_s),
        units.seconds(row.e2e_p95_s),
        units.number(row.failed),
        row.trust.status if row.trust else units.MISSING,
        DECIDED[row.slo],
    )


def _print_remarks(page: Page, over: Over, rows: Sequence[SweepLevel]) -> None:
    """Why a level has no numbers, or cannot be trusted."""
    for row in rows:
        reasons = row.trust.reasons if row.trust and row.trust.status != "valid" else ()
        said = [text for text in (row.error, row.stopped, *reasons) if text]
        if said:
            page.paragraph("", f"{load_text(over, row.level)}: {'; '.join(said)}", "muted")


def knee_text(found: Sweep) -> str:
    knee = found.knee
    if knee is None or knee.level is None:
        return (knee.reason if knee else "") or "not known"
    text = (
        f"{load_text(found.over, knee.level)}, {units.number(knee.requests_per_s)} requests/s: {knee.reason}"
    )
    if knee.between is None:
        return text
    low, high = knee.between
    near = found.over == "concurrency" and high - low <= 1
    return text if near else f"{text}; between {low:g} and {high:g} nothing was run"


def slo_text(found: Sweep) -> str:
    within = found.slo
    assert within is not None
    if within.level is None:
        word = "not decided" if within.status == "not_decided" else "no load is within it"
        return f"{found.slo_text}: {word}; {within.reason}"
    at_least = "at least " if within.status == "not_reached" else ""
    return (
        f"{found.slo_text}: up to {at_least}{load_text(found.over, within.level)} "
        f"({units.number(within.requests_per_s)} requests/s); {within.reason}"
    )


def load_text(over: Over, level: float) -> str:
    """`8 users`, `2.5/s`."""
    if over == "rate":
        return f"{level:g}/s"
    return "1 user" if level == 1 else f"{level:g} users"
