"""The load test's table on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from perfdoctor import units
from perfdoctor.latency import DEFINITIONS
from perfdoctor.model import LoadSummary, RequestCounts, Spread
from perfdoctor.reports._columns import Page
from perfdoctor.stats import P99_MIN_N

COLUMNS = ("p50", "p90", "p95", "p99", "mean")
NARROW_COLUMNS = (0, 1, 3, 6)  # of a row: name, p50, p95, n
LATENCIES = (
    ("TTFT", "ttft"),
    ("TTFA", "ttfa"),
    ("TPOT", "tpot"),
    ("ITL", "itl"),
    ("gap", "gap"),
    ("end to end", "e2e"),
    ("from schedule", "e2e_from_schedule"),
    ("failures", "error_latency"),
)
FOOTNOTE = f"p99 is - where n < {P99_MIN_N}: it would be one of the largest values, not a percentile."


def latency_rows(summary: LoadSummary) -> list[tuple[str, ...]]:
    """Name, percentiles, mean and n, as text; a latency that nobody had is left out.

    The schedule's view is a row of its own only where it differs: then the client could not send on time.
    """
    rows = []
    for name, field in LATENCIES:
        spread: Spread | None = getattr(summary, field)
        if spread is None or spread.n == 0:
            continue
        cells = tuple(units.seconds(getattr(spread, c)) for c in COLUMNS)
        rows.append((name, *cells, units.number(spread.n)))
    shown = {row[0]: row[1:] for row in rows}
    same = shown.get("from schedule") == shown.get("end to end")
    return [row for row in rows if not (same and row[0] == "from schedule")]


def lacks_p99(rows: Sequence[Sequence[str]]) -> bool:
    return any(row[1 + COLUMNS.index("p99")] == units.MISSING for row in rows)


def counted(requests: RequestCounts) -> str:
    """`197 of 200 ok, 3 failed: truncated 2, http_429 1`."""
    failed = sum(requests.failed.values())
    parts = [f"{units.number(requests.ok)} of {units.number(requests.total)} ok"]
    classes = ", ".join(f"{name} {units.number(n)}" for name, n in sorted(requests.failed.items()))
    parts.append(f"{units.number(failed)} failed" + (f": {classes}" if classes else ""))
    for value, what in (
        (requests.censored, "still open at the end"),
        (requests.empty_answers, "answers without a token"),
        (requests.redialled, "sent again on a new connection"),
    ):
        if value:
            parts.append(f"{units.number(value)} {what}")
    return ", ".join(parts)


def rates(summary: LoadSummary) -> str:
    rate = summary.rates
    parts = [
        f"{units.number(rate.requests_per_s)} requests/s",
        f"{units.number(rate.output_tokens_per_s)} output tokens/s",
    ]
    if rate.peak_output_tokens_per_s is not None:
        parts[1] += f" (peak {units.number(rate.peak_output_tokens_per_s)})"
    if rate.asked_per_s is not None:
        parts.append(f"asked for {units.number(rate.asked_per_s)} requests/s")
    if rate.in_flight_mean is not None:
        parts.append(f"{units.number(rate.in_flight_mean)} in flight on average")
    return ", ".join(parts)


def print_summary(console: Console, summary: LoadSummary, definitions: bool) -> None:
    """Counts, rates and latencies; `definitions` adds what each latency means."""
    page = Page(console)
    page.paragraph("Requests", counted(summary.requests))
    for name, message in summary.errors.items():
        page.paragraph("", f"{name}: {message}", "unknown")
    page.paragraph("Rates", rates(summary))
    _print_trust(page, summary)
    rows = latency_rows(summary)
    page.gap()
    if rows:
        table = [("", *COLUMNS, "n"), *rows]
        kept = [[row[i] for i in NARROW_COLUMNS] for row in table] if page.narrow else table
        page.table(kept, range(1, len(kept[0])), 0)
        if not page.narrow and lacks_p99(rows):
            page.paragraph("", FOOTNOTE, "muted")
    else:
        page.paragraph("Latency", "no request was answered, so there is none")
    if definitions:
        page.gap()
        for field, text in DEFINITIONS.items():
            page.paragraph(field, text) if len(field) < page.margin else page.paragraph(
                "", f"{field}: {text}"
            )


def _print_trust(page: Page, summary: LoadSummary) -> None:
    trust = summary.trust
    error = f", timing error {units.seconds(trust.error_s)}" if trust.error_s is not None else ""
    page.paragraph("Trust", trust.status + error)
    for text in (*trust.reasons, *summary.notes):
        page.paragraph("", text)
