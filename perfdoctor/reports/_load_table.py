"""The load test's table on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from perfdoctor import units
from perfdoctor.latency import DEFINITIONS, STAGES
from perfdoctor.model import LoadSummary, Spread
from perfdoctor.reports._columns import Page
from perfdoctor.reports._load_words import STAGE_WORDS, counted, facts, rates, slo_rows, slo_style, slo_title
from perfdoctor.stats import P99_MIN_N

COLUMNS = ("p50", "p90", "p95", "p99", "mean")
STYLED_HEAD = ("", "unit", *COLUMNS, "n")
NARROW_COLUMNS = (0, 1, 3, 6)  # of a row: name, p50, p95, n
LATENCIES = (
    ("TTFT", "ttft"),
    ("TTFA", "ttfa"),
    ("TPOT", "tpot"),
    ("ITL", "itl"),
    ("gap", "gap"),
    ("end to end", "e2e"),
    ("TTFT, from due", "ttft_from_schedule"),
    ("e2e, from due", "e2e_from_schedule"),
    ("e2e, failed=inf", "e2e_with_failures"),
    ("to a failure", "error_latency"),
)
# rows that only repeat another one, unless something made them differ: a late sender, failures
SAME_AS = {
    "ttft_from_schedule": "ttft",
    "e2e_from_schedule": "e2e",
    "e2e_with_failures": "e2e",
    "ttfa": "ttft",
    "gap": "itl",
}
SAME = 0.02  # share by which two rows may differ and still say one thing; below what two runs differ by
WIDE = 100  # columns from which the interval of p95 is shown
FOOTNOTE = f"p99 is - where n < {P99_MIN_N}: it would be one of the largest values, not a percentile."


def latency_rows(summary: LoadSummary, intervals: bool = False) -> list[tuple[str, ...]]:
    """Name, percentiles, mean and n, as text; without a latency that nobody had or that repeats another.

    `intervals` adds the 95 % interval of p95.
    """
    rows = []
    for name, field in LATENCIES:
        spread: Spread | None = getattr(summary, field)
        if (
            spread is None
            or spread.n == 0
            or _repeats(spread, getattr(summary, SAME_AS.get(field, ""), None))
        ):
            continue
        cells = [units.seconds(getattr(spread, c)) for c in COLUMNS]
        between = [_between(spread, "p95")] if intervals else []
        rows.append((name, *cells, *between, units.number(spread.n)))
    return rows


def _repeats(spread: Spread, other: Spread | None) -> bool:
    if other is None or other.n != spread.n:
        return False
    pairs = [(getattr(spread, c), getattr(other, c)) for c in COLUMNS]
    return all(a == b if None in (a, b) else abs(a - b) <= SAME * b for a, b in pairs)


def _between(spread: Spread, name: str) -> str:
    found = spread.intervals.get(name)
    return f"{units.seconds(found[0])} to {units.seconds(found[1])}" if found else units.MISSING


def lacks_p99(rows: Sequence[Sequence[str]]) -> bool:
    return any(row[1 + COLUMNS.index("p99")] == units.MISSING for row in rows)


def print_summary(console: Console, summary: LoadSummary, definitions: bool) -> None:
    """Counts, rates and latencies; `definitions` adds what each latency means."""
    page = Page(console)
    page.paragraph("Requests", counted(summary.requests))
    for name, message in summary.errors.items():
        page.paragraph("", f"{name}: {message}", "unknown")
    page.paragraph("Rates", rates(summary))
    for label, text in facts(summary):
        page.paragraph(label, text)
    _print_trust(page, summary)
    wide = page.width >= WIDE
    rows = latency_rows(summary, wide)
    page.gap()
    if rows:
        table = [("", *COLUMNS, *(("p95 within",) if wide else ()), "n"), *rows]
        kept = [[row[i] for i in NARROW_COLUMNS] for row in table] if page.narrow else table
        page.table(kept, range(1, len(kept[0])), 0)
        if not page.narrow and lacks_p99(rows):
            page.paragraph("", FOOTNOTE, "muted")
    else:
        page.paragraph("Latency", "no request was answered, so there is none")
    if summary.styled:
        _print_styled(page, summary)
    _print_slo(page, summary)
    if definitions:
        page.gap()
        for name, text in definitions_shown():
            page.paragraph(name, text) if len(name) < page.margin else page.paragraph("", f"{name}: {text}")


def definitions_shown() -> list[tuple[str, str]]:
    """(the JSON's name, with that of its row where the two differ much; what it means)."""
    rows = {field: name for name, field in LATENCIES if len(field) > len("ttft")}
    named = [
        (f"{field} ({rows[field]})" if field in rows else field, text) for field, text in DEFINITIONS.items()
    ]
    return [*named, *((f"{STAGE_WORDS[stage]}, stage", text) for stage, text in STAGES.items())]


def _print_slo(page: Page, summary: LoadSummary) -> None:
    if summary.slo is None:
        return
    page.gap()
    page.paragraph("SLO", slo_title(summary.slo), slo_style(summary.slo))
    page.table(slo_rows(summary.slo), (1,), page.margin)


def _print_styled(page: Page, summary: LoadSummary) -> None:
    page.gap()
    page.paragraph("Also", f"as {summary.style} would count it, from the same instants")
    page.table([STYLED_HEAD, *styled_rows(summary)], range(2, len(STYLED_HEAD)), 0)
    for row in summary.styled:
        page.paragraph("", f"{row.name}: {row.definition}", "muted")


def styled_rows(summary: LoadSummary) -> list[tuple[str, ...]]:
    return [
        (row.name, row.unit, *(units.number(getattr(row, c)) for c in COLUMNS), units.number(row.n))
        for row in summary.styled
    ]


def _print_trust(page: Page, summary: LoadSummary) -> None:
    trust = summary.trust
    error = f", timing error {units.seconds(trust.error_s)}" if trust.error_s is not None else ""
    page.paragraph("Trust", trust.status + error)
    for text in (*trust.reasons, *summary.notes):
        page.paragraph("", text)
