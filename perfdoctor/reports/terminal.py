"""The report on a terminal: trust first, the verdict and what to do about it last.

Plain text of 80 columns or less. Colour repeats what a word already says.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Protocol

from rich.console import Console
from rich.theme import Theme

from perfdoctor import units
from perfdoctor.console import STYLES, WIDTH
from perfdoctor.model import Diagnosis, Finding, FixOffer, HostFacts, Ledger, LedgerRow, ProbeState
from perfdoctor.reports import _markdown_text, _words
from perfdoctor.reports._bundle import Bundle, Report
from perfdoctor.reports._columns import Page, bar, words
from perfdoctor.reports._load_table import print_summary
from perfdoctor.reports._rows import worth_showing

__all__ = ["REPORT", "print_check", "print_diagnosis", "print_names", "print_page", "print_summary", "render"]

BAR = 16
SMALL = 0.01  # share of the ledger below which rows are added up
TRUST_STYLES = {"valid": "clear", "degraded": "unknown", "invalid": "hit"}
VERDICT_STYLES = {"found": "hit", "healthy": "clear"}


class HelpPage(Protocol):
    """What `explain` shows; see pages.py."""

    @property
    def title(self) -> str: ...
    @property
    def body_markdown(self) -> str: ...


def render(bundle: Bundle) -> str:
    """What the terminal shows, as text of 80 columns without colour."""
    buffer = io.StringIO()
    theme = Theme(STYLES, inherit=True)
    console = Console(file=buffer, width=WIDTH, theme=theme, no_color=True, highlight=False, emoji=False)
    if bundle.diagnosis is not None:
        print_diagnosis(console, bundle)
    if bundle.summary is not None:
        print_summary(console, bundle.summary, definitions=True)
    return buffer.getvalue()


REPORT = Report("txt", render)


def print_diagnosis(console: Console, bundle: Bundle) -> None:
    """The whole diagnosis. Nothing is printed for a bundle without one."""
    diagnosis = bundle.diagnosis
    if diagnosis is None:
        return
    page = Page(console)
    page.paragraph("Target", _words.target(bundle.facts.target))
    _print_trust(page, diagnosis, bundle)
    for finding in diagnosis.findings:
        page.gap()
        _print_finding(page, finding)
    _print_ledger(page, diagnosis.ledger)
    if bars := _words.server_percentiles(diagnosis):
        page.gap()
        page.paragraph("Server", f"by its own histograms, each within a bucket: {bars}")
    _print_limits(page, diagnosis)
    _print_unmeasured(page, _words.unmeasured(diagnosis))
    _print_rules(page, diagnosis)
    _print_laws(page, diagnosis)
    page.gap()
    _print_verdict(page, diagnosis)


def _print_trust(page: Page, diagnosis: Diagnosis, bundle: Bundle) -> None:
    trust = diagnosis.trust
    status = words(trust.status, TRUST_STYLES[trust.status])
    page.paragraph("Trust", status + "  " + words(_words.trust(trust, bundle)))
    for reason in trust.reasons:
        page.paragraph("", reason)
    for notice in _words.notices(bundle):
        page.paragraph("Note", notice, "unknown")


def _print_finding(page: Page, finding: Finding) -> None:
    facts = [_words.cost(finding), f"{finding.confidence} confidence"]
    head = words(finding.rule, "hit") + "  " + words(", ".join(f for f in facts if f))
    page.paragraph("Finding", head)
    page.paragraph("", finding.summary or finding.title)
    if finding.evidence:
        page.table([_evidence_cells(*_words.evidence(e)) for e in finding.evidence], (1, 3), page.margin + 2)
    if finding.excluded:
        page.paragraph("Excluded", "; ".join(finding.excluded))
    for number, seen in enumerate(finding.where):
        page.paragraph("Seen" if number == 0 else "", seen)
    if finding.explained_by:
        page.paragraph("", f"explained by {finding.explained_by}")
    for number, offer in enumerate(_words.offered(finding)):
        page.paragraph("Fixes" if number == 0 else "", f"{offer.id}: {_words.bound(offer)}")


def _evidence_cells(signal: str, value: str, comparison: str, limit: str, source: str) -> tuple[str, ...]:
    return signal, value, comparison, limit, f"({source})" if source else ""


def _print_ledger(page: Page, ledger: Ledger) -> None:
    if not ledger.mean and not ledger.load:
        page.gap()
        page.paragraph("Ledger", f"not known: {ledger.missing or 'nothing was measured'}")
    if ledger.mean:
        page.gap()
        titles = [_words.ledger_title(ledger.mean, "mean request")]
        if ledger.p95:
            titles.append(_words.ledger_title(ledger.p95, "p95"))
        page.paragraph("Ledger", ", ".join(titles))
        _print_rows(page, ledger.mean, ledger.p95)
    if ledger.load:
        page.gap()
        page.paragraph("Load", _words.ledger_title(ledger.load, "model loading"))
        _print_rows(page, ledger.load, ())


def _print_rows(page: Page, rows: Sequence[LedgerRow], p95: Sequence[LedgerRow]) -> None:
    """One line a row; rows that are small in both columns share the last one."""
    tail = {r.row: r for r in p95}
    mean = {r.row: r for r in rows}
    names = [n for n in {**mean, **tail} if any(worth_showing(t[n]) for t in (mean, tail) if n in t)]
    small = [n for n in names if _is_small(n, mean, tail)]
    if len(small) < 2:
        small = []
    lines = [_row(page, n, mean.get(n), tail.get(n), bool(p95)) for n in names if n not in small]
    if small:
        name = f"{units.number(len(small))} small rows"
        lines.append(_row(page, name, _sum(small, mean), _sum(small, tail), bool(p95)))
    if lines:
        page.table(lines, (1, 2) if page.narrow else (2, 3, 4), 2)


def _is_small(name: str, *columns: Mapping[str, LedgerRow]) -> bool:
    return name != "unexplained" and all(c[name].share < SMALL for c in columns if name in c)


def _sum(names: Sequence[str], column: Mapping[str, LedgerRow]) -> LedgerRow | None:
    rows = [column[n] for n in names if n in column]
    if not rows:
        return None
    return LedgerRow(row="", seconds=sum(r.seconds for r in rows), share=sum(r.share for r in rows))


def _row(
    page: Page, name: str, mean: LedgerRow | None, p95: LedgerRow | None, with_p95: bool
) -> tuple[str, ...]:
    drawn = () if page.narrow else (bar(mean.share if mean else 0.0, BAR),)
    known = (units.share(mean.share), units.seconds(mean.seconds)) if mean else (units.MISSING,) * 2
    tail = (f"p95 {units.seconds(p95.seconds if p95 else None)}",) if with_p95 else ()
    return (name, *drawn, *known, *tail)


def _print_limits(page: Page, diagnosis: Diagnosis) -> None:
    text = _words.roof(diagnosis.roof)
    if text:
        page.gap()
        page.paragraph("Roof", text)
    for assumption in diagnosis.roof.assumptions:
        page.paragraph("", f"assumes {assumption}", "muted")
    for law in diagnosis.violated_laws:
        stops = f" Not judged for it: {', '.join(law.stops)}." if law.stops else ""
        page.paragraph("Law", f"{law.law} violated: {law.what}. Likely: {law.likely}.{stops}", "unknown")


def _print_unmeasured(page: Page, states: Sequence[ProbeState]) -> None:
    if states:
        page.gap()
    alike: dict[tuple[str, str | None], list[ProbeState]] = {}
    for state in states:
        alike.setdefault((_words.probe_problem(state), state.enable), []).append(state)
    for number, (state, *others) in enumerate(alike.values()):
        names = ", ".join(s.probe for s in (state, *others))
        text = words(names, "unknown") + "  " + words(_words.probe_problem(state))
        page.paragraph("Missing" if number == 0 else "", text)
        if state.enable:
            page.command("", state.enable)


def _print_rules(page: Page, diagnosis: Diagnosis) -> None:
    clear = [r.rule for r in _words.rules_with(diagnosis, "clear")]
    unknown = _words.rules_with(diagnosis, "unknown")
    if clear or unknown:
        page.gap()
    if clear:
        page.paragraph("Clear", words(", ".join(clear), "clear"))
    for number, rule in enumerate(unknown):
        text = words(rule.rule, "unknown") + "  " + words(rule.reason)
        page.paragraph("Unknown" if number == 0 else "", text)


def _print_laws(page: Page, diagnosis: Diagnosis) -> None:
    """Which laws were put to the test, and why the others were not."""
    if not diagnosis.laws:
        return
    page.gap()
    held = ", ".join(_words.laws_that_hold(diagnosis))
    page.paragraph(
        "Laws", words(f"kept: {held}" if held else "none was tested", "clear" if held else "muted")
    )
    for name, reason in _words.untested_laws(diagnosis).items():
        page.paragraph("", f"{name} not tested: {reason}", "muted")


def _print_verdict(page: Page, diagnosis: Diagnosis) -> None:
    title = words(_words.verdict_title(diagnosis), VERDICT_STYLES.get(diagnosis.verdict.status, "unknown"))
    summary = f". {diagnosis.verdict.summary}" if diagnosis.verdict.summary else ""
    page.paragraph("Verdict", title + words(summary))
    offer = _words.first_fix(diagnosis)
    if offer is not None:
        _print_fix(page, offer)
    if diagnosis.next:
        page.command("Next", diagnosis.next)


def _print_fix(page: Page, offer: FixOffer) -> None:
    risk = f"; risk: {offer.risk}" if offer.risk else ""
    page.paragraph("Fix 1", f"{offer.title}, {_words.bound(offer)}{risk}")
    if offer.precondition:
        page.paragraph("", f"only if {offer.precondition}", "muted")
    if effects := _words.effects(offer.changes_output, offer.needs_restart, offer.first_call):
        page.paragraph("", effects, "muted")
    for command in offer.commands:
        page.command("", command)


def print_check(console: Console, probe_states: Sequence[ProbeState], host_facts: HostFacts) -> None:
    """Which probes work here, and the command that would enable each of the others."""
    page = Page(console)
    host = host_facts
    quota = f" (quota {units.number(host.quota_cores)})" if host.quota_cores is not None else ""
    memory = units.size_bytes(host.memory_bytes)
    cores = f"{units.number(host.cores)} cores{quota}"
    page.paragraph("Host", ", ".join(p for p in (host.cpu, cores, f"{memory} memory", host.kernel) if p))
    for gpu in host.gpus:
        gpm = "GPM counters" if gpu.gpm else "no GPM counters"
        page.paragraph(f"GPU {gpu.index}", f"{gpu.name}, {units.size_bytes(gpu.memory_bytes)}, {gpm}")
    page.gap()
    for state in probe_states:
        style = "clear" if state.status == "ok" else "unknown"
        page.paragraph(state.probe, words(state.status, style) + "  " + words(state.why or ""))
        if state.enable:
            page.command("", state.enable)
    working = sum(s.status == "ok" for s in probe_states)
    page.gap()
    page.paragraph("Result", f"{units.number(working)} of {units.number(len(probe_states))} probes work here")


def print_page(console: Console, page: HelpPage) -> None:
    """A page of `explain`."""
    out = Page(console)
    out.emit(words(page.title, "strong"))
    out.gap()
    _markdown_text.show(out, page.body_markdown)


def print_names(console: Console, names: Mapping[str, Sequence[str]]) -> None:
    """What `explain` knows, by what it is."""
    page = Page(console)
    for group, members in names.items():
        page.paragraph(group, ", ".join(members))
        page.gap()
    page.command("Next", "perfdoctor explain NAME")
