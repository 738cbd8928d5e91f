"""The report as Markdown, to be pasted into an issue or a pull request.

Foreign text is escaped, so that a model's name can neither open a tag nor mention a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from perfdoctor import units
from perfdoctor.literal import one_line, visible
from perfdoctor.model import Diagnosis, Finding, FixOffer, LedgerRow, LoadSummary, ProbeState
from perfdoctor.reports import _words
from perfdoctor.reports._bundle import Bundle, Report
from perfdoctor.reports._load_table import COLUMNS, FOOTNOTE, lacks_p99, latency_rows, styled_rows
from perfdoctor.reports._load_words import counted, facts, rates, slo_rows, slo_title
from perfdoctor.reports._rows import worth_showing

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#])")


def render(bundle: Bundle) -> str:
    """Verdict and fixes first, the long tables after them."""
    lines = [f"# perfdoctor: {escape(bundle.facts.run or 'run')}", ""]
    lines += [f"**Target** {escape(_words.target(bundle.facts.target))}", ""]
    lines += [f"- Note: {escape(notice)}" for notice in _words.notices(bundle)]
    if bundle.diagnosis is not None:
        lines += _diagnosis(bundle.diagnosis, bundle)
    if bundle.summary is not None and bundle.summary.requests.total:
        lines += _summary(bundle.summary)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


REPORT = Report("md", render)


def escape(text: str) -> str:
    """One line of Markdown that shows exactly this text."""
    return _SPECIAL.sub(r"\\\1", one_line(text)).replace("@", "@\u200b")


def code(text: str) -> str:
    """A code span; the fence is longer than any run of backticks inside."""
    text = one_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Cells are escaped here; `right` lists the columns of numbers."""
    rule = ["---:" if i in right else "---" for i in range(len(head))]
    body = [[escape(cell) for cell in row] for row in rows]
    return ["", *(f"| {' | '.join(line)} |" for line in ([*head], rule, *body)), ""]


def _diagnosis(diagnosis: Diagnosis, bundle: Bundle) -> Iterator[str]:
    verdict, trust = diagnosis.verdict, diagnosis.trust
    yield from ("", f"## {escape(_words.verdict_title(diagnosis))}", "", escape(verdict.summary), "")
    yield f"**Trust** {trust.status}: {escape(_words.trust(trust, bundle))}"
    yield from (f"- {escape(reason)}" for reason in trust.reasons)
    for finding in diagnosis.findings:
        yield from _finding(finding)
    yield from _ledger(diagnosis)
    if bars := _words.server_percentiles(diagnosis):
        yield from ("", f"**Server** by its own histograms, each within a bucket: {escape(bars)}")
    yield from _limits(diagnosis)
    yield from _unmeasured(_words.unmeasured(diagnosis))
    if diagnosis.rules:
        rows = [(r.rule, r.status, r.reason) for r in diagnosis.rules]
        yield from ("", "### Rules", *table(("rule", "status", "reason"), rows))
    if diagnosis.laws:
        states = [(law.law, law.says, law.status, law.reason) for law in diagnosis.laws]
        yield from ("", "### Laws", *table(("law", "says", "state", "why"), states))
    if diagnosis.next:
        yield from ("", "**Next**", *_fenced(diagnosis.next))


def _finding(finding: Finding) -> Iterator[str]:
    cost = ", ".join(p for p in (_words.cost(finding), f"{finding.confidence} confidence") if p)
    yield from ("", f"### {code(finding.rule)}: {escape(cost)}", "", escape(finding.summary or finding.title))
    if finding.evidence:
        rows = [_words.evidence(e) for e in finding.evidence]
        yield from table(("signal", "value", "", "limit", "source of the limit"), rows, (1, 3))
    if finding.excluded:
        yield f"Excluded: {escape('; '.join(finding.excluded))}"
    if finding.where:
        yield f"Seen: {'; '.join(code(seen) for seen in finding.where)}"
    if finding.explained_by:
        yield f"Explained by {code(finding.explained_by)}"
    for offer in _words.offered(finding):
        yield from _fix(offer)


def _fix(offer: FixOffer) -> Iterator[str]:
    yield from ("", f"**Fix: {escape(offer.title)}** ({code(offer.id)}, {_words.bound(offer)})")
    for name, value in (
        ("Only if", offer.precondition),
        ("Not if", offer.contraindication),
        ("Risk", offer.risk),
        ("Effects", _words.effects(offer.changes_output, offer.needs_restart, offer.first_call)),
        ("Undo", offer.rollback),
        *(("Measured", _words.measured(one)) for one in offer.measured),
    ):
        if value:
            yield f"- {name}: {escape(value)}"
    if offer.verify:
        yield f"- Verify: {code(offer.verify)}"
    if offer.commands:
        yield from _fenced("\n".join(offer.commands))


def _fenced(text: str) -> list[str]:
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return ["", fence + "sh", *visible(text).splitlines(), fence, ""]


def _ledger(diagnosis: Diagnosis) -> Iterator[str]:
    ledger = diagnosis.ledger
    for name, rows in (
        ("mean request", ledger.mean),
        ("p95 request", ledger.p95),
        ("model load", ledger.load),
    ):
        if rows:
            title = _words.ledger_title(rows, name)
            yield from (
                "",
                f"### Time: {title}",
                *table(("row", "share", "time", "source"), _rows(rows), (1, 2)),
            )
    if not ledger.mean and ledger.missing:
        yield from ("", f"Ledger not known: {escape(ledger.missing)}")


def _rows(rows: Sequence[LedgerRow]) -> list[tuple[str, ...]]:
    return [
        (r.row, units.share(r.share), units.seconds(r.seconds), r.source) for r in rows if worth_showing(r)
    ]


def _limits(diagnosis: Diagnosis) -> Iterator[str]:
    if text := _words.roof(diagnosis.roof):
        yield f"**Roof** {escape(text)}"
    yield from (f"- assumes {escape(a)}" for a in diagnosis.roof.assumptions)
    for law in diagnosis.violated_laws:
        yield from (
            "",
            f"**Law violated** {code(law.law)}: {escape(law.what)}. Likely: {escape(law.likely)}.",
        )


def _unmeasured(states: Sequence[ProbeState]) -> Iterator[str]:
    if states:
        rows = [(s.probe, _words.probe_problem(s), s.enable or "") for s in states]
        yield from ("", "### Not measured", *table(("probe", "why", "enable"), rows))


def _summary(summary: LoadSummary) -> Iterator[str]:
    yield from ("", "### Load", "")
    if summary.slo is not None:
        yield f"**SLO** {escape(slo_title(summary.slo))}"
        yield from (
            "",
            *(f"- {escape(f'SLO {text}: {value}, {met}')}" for text, value, met in slo_rows(summary.slo)),
        )
    yield f"- requests: {escape(counted(summary.requests))}"
    yield f"- rates: {escape(rates(summary))}"
    yield from (f"- {label.lower()}: {escape(text)}" for label, text in facts(summary))
    trust = "; ".join((summary.trust.status, *summary.trust.reasons))
    yield f"- trust: {escape(trust)}"
    yield from (f"- note: {escape(note)}" for note in summary.notes)
    yield from (f"- {escape(name)}: {escape(message)}" for name, message in summary.errors.items())
    rows = latency_rows(summary)
    if rows:
        yield from table(("latency", *COLUMNS, "n"), rows, range(1, len(rows[0])))
        if lacks_p99(rows):
            yield escape(FOOTNOTE)
    if summary.styled:
        head = (f"as {summary.style} counts", "unit", *COLUMNS, "n")
        yield from table(head, styled_rows(summary), range(2, len(head)))
