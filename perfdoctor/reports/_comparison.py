"""A comparison on a terminal and as Markdown: a table, what must be known beside it, the verdict last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from perfdoctor import units
from perfdoctor.latency import DEFINITIONS
from perfdoctor.literal import one_line
from perfdoctor.model import ComparedMetric, ComparedPart, Comparison, CrossedLimit, Difference, LedgerRow
from perfdoctor.reports._columns import Page
from perfdoctor.reports._rows import worth_showing
from perfdoctor.reports.markdown import code, escape, table

HEAD = ("", "before", "after", "ratio", "95 %", "verdict")
LEDGERS = {"request": "mean request", "load": "loading the model"}
LEDGER_HEAD = ("row", "before", "after")
VERDICTS = {
    "better": "better",
    "worse": "worse",
    "no_significant_change": "no significant change",
    "unknown": "not known",
}
SHORT = VERDICTS | {"no_significant_change": "not significant"}  # for 80 columns
STYLES = {"better": "clear", "worse": "hit"}
CROSSED = {True: "crossed", False: "kept", None: "not decided"}


def print_comparison(console: Console, found: Comparison) -> None:
    page = Page(console)
    page.paragraph("Before", found.before)
    page.paragraph("After", found.after)
    for part in found.parts:
        page.gap()
        if part.name:
            page.paragraph("Load", part.name)
        print_part(page, part)
    for label, text, style in _beside(found):
        page.paragraph(label, text, style)
    for part in found.parts:
        page.paragraph("Verdict", verdict_text(part), _style(part))


def print_part(page: Page, part: ComparedPart) -> None:
    rows = [(*cells(row)[:-1], SHORT[row.verdict]) for row in part.metrics]
    page.table([HEAD, *rows], (1, 2, 3, 4), 0)
    if part.notes or unknowns(part):
        page.gap()
    for text in unknowns(part):
        page.paragraph("Unknown", text, "unknown")
    for note in part.notes:
        page.paragraph("Note", note)
    ledger = ledger_cells(part.ledger_before, part.ledger_after)
    if ledger:
        page.gap()
        page.paragraph("Ledger", f"{LEDGERS[part.ledger_of]}, by what takes its time")
        page.table([LEDGER_HEAD, *ledger], (1, 2), 2)
    for limit in part.limits:
        page.paragraph("Limit", limit_text(limit), {True: "hit", None: "unknown"}.get(limit.crossed, ""))


def markdown(found: Comparison) -> str:
    lines = [f"# {escape(found.before)} against {escape(found.after)}", ""]
    for part in found.parts:
        if part.name:
            lines += [f"## {escape(part.name)}", ""]
        lines += [f"**Verdict** {escape(verdict_text(part))}"]
        lines += table(("metric", *HEAD[1:]), [cells(row) for row in part.metrics], range(1, 5))
        lines += [f"- not known: {escape(text)}" for text in unknowns(part)]
        lines += [f"- {escape(note)}" for note in part.notes]
        lines += [f"- limit {code(limit.text)}: {escape(_decided(limit))}" for limit in part.limits]
        if rows := ledger_cells(part.ledger_before, part.ledger_after):
            lines += table(LEDGER_HEAD, rows, (1, 2))
    lines += [f"- {escape(f'{label.lower()}: {text}')}" for label, text, _ in _beside(found)]
    return "\n".join(lines).rstrip() + "\n"


def cells(row: ComparedMetric) -> tuple[str, ...]:
    """Name, before, after, ratio (of shares the difference), interval, verdict."""
    return (
        name_text(row),
        value_text(row.metric, row.before),
        value_text(row.metric, row.after),
        change_text(row.metric, row.ratio),
        f"{change_text(row.metric, row.interval[0])} to {change_text(row.metric, row.interval[1])}"
        if row.interval
        else units.MISSING,
        VERDICTS[row.verdict],
    )


def name_text(row: ComparedMetric) -> str:
    return row.metric + ("/token" if row.per_token else "")


def unknowns(part: ComparedPart) -> list[str]:
    """`ttft_p99, e2e_p99: 200 values, ...`: what could not be judged, by why."""
    by_reason: dict[str, list[str]] = {}
    for row in part.metrics:
        if row.verdict == "unknown":
            by_reason.setdefault(row.reason, []).append(name_text(row))
    return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def value_text(metric: str, value: float | None) -> str:
    if _is_share(metric):
        return units.share(value)
    timed = metric.rpartition("_")[0] in DEFINITIONS and not metric.startswith("user_tokens")
    return units.seconds(value) if timed or metric == "load_s" else units.number(value)


def change_text(metric: str, value: float | None) -> str:
    if value is None:
        return units.MISSING
    if _is_share(metric):
        return ("+" if value >= 0 else "") + units.share(value)
    return f"{value:.2f}" if value < 10 else units.number(value)


def _is_share(metric: str) -> bool:
    return metric.endswith(("_rate", "_share"))


def ledger_cells(before: Sequence[LedgerRow], after: Sequence[LedgerRow]) -> list[tuple[str, str, str]]:
    """Rows that are worth a line on either side; one that a side has not is 0 there, as they sum to all."""
    was, now = ({row.row: row for row in rows} for rows in (before, after))
    names = [n for n in {**was, **now} if any(worth_showing(t[n]) for t in (was, now) if n in t)]
    total = [units.seconds(sum(r.seconds for r in rows)) for rows in (before, after)]
    found = [(n, *(units.seconds(t[n].seconds if n in t else 0.0) for t in (was, now))) for n in names]
    return [*found, ("all", *total)] if found else []  # type: ignore[list-item]


def limit_text(limit: CrossedLimit) -> str:
    return f"{limit.text}  {_decided(limit)}"


def _decided(limit: CrossedLimit) -> str:
    return f"{CROSSED[limit.crossed]}: {limit.reason}"


def _beside(found: Comparison) -> Iterator[tuple[str, str, str]]:
    """(label, text, style) of what a reader must know, warnings first."""
    for difference in found.differences:
        tried = difference.what == "setting"
        yield ("Setting" if tried else "Warning", _differs(difference), "" if tried else "unknown")
    for note in found.notes:
        yield "Note", note, ""


def _differs(difference: Difference) -> str:
    what = "" if difference.what in (difference.name, "setting") else f"{difference.what}: "
    return f"{what}{difference.name} was {difference.before}, is {difference.after}"


def verdict_text(part: ComparedPart) -> str:
    """`worse: ttft_p95 (1.13x); better: ...`."""
    said = []
    for verdict in ("worse", "better"):
        rows = [row for row in part.metrics if row.verdict == verdict]
        if rows:
            said.append(f"{verdict}: " + ", ".join(_moved(row) for row in rows))
    if not said:
        judged = any(row.verdict != "unknown" for row in part.metrics)
        said = [VERDICTS["no_significant_change"] if judged else "nothing could be judged"]
    return one_line((f"{part.name}, " if part.name else "") + "; ".join(said))


def _moved(row: ComparedMetric) -> str:
    unit = "" if _is_share(row.metric) else "x"
    return f"{name_text(row)} {change_text(row.metric, row.ratio)}{unit}"


def _style(part: ComparedPart) -> str:
    found = {row.verdict for row in part.metrics}
    return next((STYLES[v] for v in ("worse", "better") if v in found), "")
