"""The pages of `perfdoctor explain`: rules, fixes, signals, errors, measures, classes, laws and claims.

Nothing is written here: a rule's page is its docstring and limits, a fix's its Markdown file, a signal's its
function's docstring, an error's its class's docstring. A class's page is the list of what belongs to it, a
claim's what treats it.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from perfdoctor import change, errors, latency, limits, registry, units
from perfdoctor.diagnosis import measure
from perfdoctor.diagnosis.catalogue import Fix, load_fixes
from perfdoctor.diagnosis.claims import Claim, load_claims
from perfdoctor.diagnosis.laws import LAWS
from perfdoctor.diagnosis.measure import Measure
from perfdoctor.diagnosis.rule import Limit, Rule
from perfdoctor.reports import _words

RULES = "perfdoctor.diagnosis.rules"
_STATISTIC = re.compile(r"-(mean|min|max|p\d\d)$")
NEAR = 3  # how many similar names an unknown one is answered with

# The source documents, as the fixes cite them.
DOCUMENTS: Mapping[str, str] = {
    "D0": "IO wait and compute utilisation (A10)",
    "D1": "latency down by 70 % (A10)",
    "D2": "memory bandwidth (A100-40GB)",
    "D3": "GPU utilisation with CUDA 12.8 (A10, RTX 4090, L4)",
    "D4": "vLLM on a T4",
}

MEASURES: Mapping[str, str] = latency.DEFINITIONS | latency.STAGES | limits.DEFINITIONS | change.DEFINITIONS

Kind = Literal["rule", "fix", "signal", "error", "measure", "class", "law", "claim"]


@dataclass(frozen=True, slots=True)
class Page:
    """One page, ready to print. `body_markdown` does not repeat the title."""

    kind: Kind
    name: str
    title: str
    body_markdown: str


Maker = Callable[[], Page]


def all_names() -> dict[str, tuple[str, ...]]:
    """Every name that `find_page` knows, by what it is; advice that does not hold stands apart."""
    return {group: tuple(name for name, _ in entries) for group, entries in _groups().items()}


def find_page(name: str) -> Page:
    """The page of a name; case, and `_` for `-`, do not matter, nor a statistic at its end, as in `ttft_p95`.

    UsageError tells the nearest names.
    """
    index = _index()
    by_folded = {_folded(known): known for known in reversed(index)}
    wanted = _folded(name)
    for known in (wanted, _STATISTIC.sub("", wanted)):
        if known in by_folded:
            return index[by_folded[known]]()
    containing = [n for n in by_folded if len(wanted) > 1 and wanted in n]
    near = difflib.get_close_matches(wanted, by_folded, NEAR) + containing
    shown = ", ".join(by_folded[n] for n in list(dict.fromkeys(near))[:NEAR])
    raise errors.UsageError(
        f"there is no page about '{name}'",
        f"The nearest names: {shown}." if shown else "No name is similar.",
        "`perfdoctor explain` without a name lists all of them",
    )


def _folded(name: str) -> str:
    return name.strip().lower().replace("_", "-").removesuffix(".md")


def _index() -> dict[str, Maker]:
    """Name to page. Where two kinds share a name the earlier kind keeps it (a rule before its class)."""
    found: dict[str, Maker] = {}
    for entries in _groups().values():
        for name, make in entries:
            found.setdefault(name, make)
    return found


def _groups() -> dict[str, list[tuple[str, Maker]]]:
    rules = tuple(registry.discover(RULES, "RULE"))
    fixes, claims = load_fixes(), load_claims()
    classes = {c for f in fixes for c in f.classes} | {rule.cls for _, rule, _ in rules}
    cited = {d for f in fixes for d in f.documents if " " not in d}  # the others are sections
    return {
        "Rules": [(name, partial(_rule_page, name, rule, text, fixes)) for name, rule, text in rules],
        "Fixes": [(f.id, partial(_fix_page, f)) for f in fixes if f.verdict != "refuted"],
        "Refuted": [(f.id, partial(_fix_page, f)) for f in fixes if f.verdict == "refuted"],
        "Signals": [
            (m.name, partial(_signal_page, m)) for m in sorted(measure.all_measures(), key=lambda m: m.name)
        ],
        "Errors": [
            (name, partial(_error_page, name, error)) for name, error in sorted(errors.tree().items())
        ],
        "Measures": [(name, partial(Page, "measure", name, name, text)) for name, text in MEASURES.items()],
        "Classes": [
            (c, partial(_class_page, c, [n for n, r, _ in rules if r.cls == c], fixes))
            for c in sorted(classes)
        ],
        "Laws": [(name, partial(Page, "law", name, f"Law {name}", text)) for name, text in LAWS.items()],
        "Claims": [
            (row, partial(_claim_page, row, claims.get(row), fixes))
            for row in sorted(cited | claims.keys(), key=lambda row: (row[0] == "C", len(row), row))
        ],
    }


# ------------------------------------------------------------------------------ one page each


def _rule_page(name: str, rule: Rule, text: str, fixes: Iterable[Fix]) -> Page:
    title, _, rest = text.partition("\n")
    body = [rest.strip(), "", f"Class: {rule.cls}", "", "## Limits"]
    body += [_limit_line(limit) for limit in rule.limits()]
    if rule.told_apart:
        body += ["", "Told apart from: " + ", ".join(n.name for n in rule.told_apart)]
    return Page("rule", name, title.rstrip("."), "\n".join(body + _fix_lists(rule.cls, fixes, name)))


def _limit_line(limit: Limit) -> str:
    compared = limit.comparison.replace("_", " ")
    unit = next((m.unit for m in measure.all_measures() if m.name == limit.signal), "")
    return f"- {limit.signal} {compared} {units.quantity(limit.limit, unit)} ({limit.source})"


def _fix_page(fix: Fix) -> Page:
    facts = [
        ("Verdict", fix.verdict + (": never recommended" if fix.verdict == "refuted" else "")),
        ("Classes", ", ".join(fix.classes)),
        ("Rules", ", ".join(fix.rules)),
        ("Engines", ", ".join(fix.engines) or "any"),
        ("Only if", fix.precondition),
        ("Not if", fix.contraindication),
        ("Risk", fix.risk),
        ("Effects", _words.effects(fix.changes_output, fix.needs_restart, fix.first_call)),
        ("Undo", fix.rollback),
        ("Claimed", _claimed(fix)),
        *(("Measured", _words.measured(one)) for one in fix.measured),
        ("Known", fix.source),
        ("Cited", _cited(fix.documents)),
        ("Instead", ", ".join(fix.instead)),
        ("Settings", _settings(fix)),
    ]
    lines = [f"{label}: {text}" for label, text in facts if text]
    return Page("fix", fix.id, fix.title, "\n".join([*lines, "", fix.body, *_command_lines(fix)]))


def _claimed(fix: Fix) -> str:
    factors = ", ".join(f"{row}: {units.number(factor)}x" for row, factor in fix.promised.items())
    return f"{fix.claim} ({factors})" if factors else fix.claim


def _settings(fix: Fix) -> str:
    """What the local server's settings are without the fix and with it."""
    without, with_it = (
        " ".join(f"{name}={value}" for name, value in asked.items()) or "as it is"
        for asked in (fix.before, fix.switch)
    )
    return f"{without} against {with_it}" if fix.before or fix.switch else ""


def _command_lines(fix: Fix) -> list[str]:
    """The templates as they are: `{names}` are filled in from a run when the fix is offered."""
    blocks = [("", fix.commands), *((f" for {e}", v.commands) for e, v in sorted(fix.per_engine.items()))]
    lines: list[str] = []
    for whom, commands in blocks:
        if commands:
            lines += ["", f"## Commands{whom}", *(f"    {c}" for c in commands)]
    return [*lines, "", "## Verify, before and after", f"    {fix.verify}"] if fix.verify else lines


def _cited(documents: Iterable[str]) -> str:
    cited = tuple(documents)
    named = sorted({d for c in cited for d in DOCUMENTS if c.startswith(d)})
    legend = "; ".join(f"{d} = {DOCUMENTS[d]}" for d in named)
    return f"{', '.join(cited)} ({legend})" if cited else ""


def _signal_page(one: Measure) -> Page:
    title, _, rest = one.page.partition("\n")
    return Page(
        "signal", one.name, title.rstrip("."), f"Unit: {one.unit}\n\n{inspect.cleandoc(rest)}".strip()
    )


def _error_page(name: str, error: type[errors.PerfdoctorError]) -> Page:
    title, _, rest = inspect.cleandoc(error.__doc__ or "").partition("\n")
    return Page("error", name, title.rstrip("."), f"{rest.strip()}\n\nExit code: {error.exit_code}".strip())


def _claim_page(row: str, claim: Claim | None, fixes: Iterable[Fix]) -> Page:
    title = f"Contradiction {row}" if row.startswith("C") else f"Claim {_cited([row])}"
    body: list[str] = []
    if claim:
        see = ", ".join(claim.see) or "nothing else"
        body += [f"Said: {claim.says}", "", claim.answer, "", f"See: {see}"]
    for fix in fixes:
        if row in fix.documents:
            body += ["", f"## {fix.id} ({fix.verdict})", fix.title + ".", f"Claimed: {_claimed(fix)}"]
    return Page("claim", row, title, "\n".join(body).strip())


def _class_page(cls: str, rule_ids: Iterable[str], fixes: Iterable[Fix]) -> Page:
    judged = ", ".join(rule_ids) or "none yet"
    return Page("class", cls, f"Class {cls}", "\n".join([f"Judged by: {judged}", *_fix_lists(cls, fixes)]))


def _fix_lists(cls: str, fixes: Iterable[Fix], rule: str | None = None) -> list[str]:
    own = [f for f in fixes if f.treats(cls, rule)]
    lines: list[str] = []
    for heading, wanted in (("Fixes", True), ("Advice that does not hold", False)):
        chosen = [f for f in own if (f.verdict != "refuted") == wanted]
        if chosen:
            lines += ["", f"## {heading}", *(f"- {f.id}: {f.title}" for f in chosen)]
    return lines
