"""A verification, and the table of many, on a terminal: what was tried, what it did, the verdict last."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from perfdoctor import units
from perfdoctor.model import Outputs, Trial, Trials, TriedSide, Verification
from perfdoctor.reports._columns import Page
from perfdoctor.reports._comparison import print_part

VERDICTS = {
    "helps": "helps",
    "no_effect": "no effect",
    "hurts": "hurts",
    "changes_output": "changes output",
    "cannot_run": "cannot run here",
    "not_judged": "not judged",
}
METRICS = {"e2e_mean": "the mean time of an answer", "load_s": "the time of loading the model"}
STYLES = {"helps": "clear", "hurts": "hit", "changes_output": "hit", "no_effect": "unknown"}
HEAD = ("fix", "documents", "catalogue", "here", "ratio", "95 %")


def print_verification(console: Console, found: Verification) -> None:
    page = Page(console)
    page.paragraph("Fix", f"{found.fix}: {found.title}" if found.title else found.fix)
    if found.claim:
        page.paragraph("Claimed", found.claim)
    page.paragraph("Where", ", ".join(p for p in (found.model, found.hardware, found.versions) if p))
    page.paragraph("Load", found.load)
    for label, side in (("Before", found.before), ("After", found.after)):
        page.paragraph(label, side_text(side))
    page.paragraph("Answers", outputs_text(found.outputs))
    if found.compared:
        page.gap()
        print_part(page, found.compared)
    for note in found.notes:
        page.paragraph("Note", note)
    for text in _left_out(found):
        page.paragraph("Note", text)
    page.paragraph("Predicted", predicted_text(found))
    page.paragraph("Seen", seen_text(found))
    if found.after.bottleneck:
        page.paragraph("Next", f"with it the bottleneck is {found.after.bottleneck}")
    if found.state != "complete":
        page.paragraph("State", found.state + (f": {found.error}" if found.error else ""), "unknown")
    page.paragraph("Verdict", verdict_text(found), STYLES.get(found.verdict, ""))


def side_text(side: TriedSide) -> str:
    """`cache=static; up after 9.1 s (5 s of them compiling), first answer 31 ms, then 30 ms`."""
    settings = ", ".join(f"{name}={value}" for name, value in side.settings.items())
    what = side.command or side.endpoint or settings or "as it is"
    cost = []
    if side.start_s is not None:
        compiled = f", {units.seconds(side.compile_s)} of it compiling" if side.compile_s else ""
        cost.append(f"up after {units.seconds(side.start_s)}{compiled}")
    if side.first_answer_s is not None:
        cost.append(
            f"first answer {units.seconds(side.first_answer_s)}, the same again "
            f"{units.seconds(side.next_answer_s)}"
        )
    return "; ".join([what, *cost])


def outputs_text(outputs: Outputs) -> str:
    if outputs.missing:
        return f"not compared: {outputs.missing}"
    steady = outputs.prompts - outputs.unsteady
    asked = f"{steady} greedy answers of {outputs.tokens} tokens"
    parts = [f"{asked} are the same"]
    if outputs.differ:
        parts = [f"{outputs.differ} of {asked} differ, from token {outputs.first} on"]
    if outputs.differ_together:
        parts.append(f"{outputs.differ_together} more when several are asked at once")
    if outputs.unsteady:
        parts.append(f"{outputs.unsteady} are not told of: the before side does not repeat its own")
    return "; ".join(parts)


def _left_out(found: Verification) -> Iterator[str]:
    """All runs that do not count, with the reason of the first."""
    out = [run for run in found.runs if run.left_out]
    if out:
        names = ", ".join(run.run for run in out)
        yield f"not counted: {names}; the first because {out[0].left_out}"


def predicted_text(found: Verification) -> str:
    if found.bound is None:
        return f"no bound: {found.bound_source}"
    low, high = (f"{edge:.2f}" for edge in found.bound)
    between = f"{low}x" if low == high else f"{low}x to {high}x"
    return f"at most {between} ({found.bound_source})"


def seen_text(found: Verification) -> str:
    if found.ratio is None or found.interval is None or found.noise is None:
        return f"nothing: {found.reason}"
    low, high = found.interval
    text = (
        f"{found.ratio:.2f}x as fast (95 %: {low:.2f} to {high:.2f}), by {METRICS[found.metric]}; "
        f"equal sides are {1 / found.noise:.2f} to {found.noise:.2f} by chance"
    )
    if found.bound and found.interval[0] > found.bound[1]:
        text += "; more than the ledger allows, so it removes other time too"
    return text


def verdict_text(found: Verification) -> str:
    """`changes output: 1.35x as fast`."""
    reason = found.reason
    if found.ratio and found.effect in ("helps", "hurts"):
        reason = f"{found.ratio:.2f}x as fast"
    return f"{VERDICTS[found.verdict]}: {reason}" if reason else VERDICTS[found.verdict]


def print_trials(console: Console, found: Trials) -> None:
    page = Page(console)
    page.paragraph("Model", ", ".join(p for p in (found.model, found.hardware) if p))
    page.gap()
    tried = [trial for trial in found.trials if trial.result]
    if tried:
        page.table([HEAD, *map(trial_cells, tried)], (4,), 0)
    for trial in tried:
        if trial.result and trial.verdict == "changes_output":
            page.paragraph("Answers", f"{trial.fix}: {outputs_text(trial.result.outputs)}")
    others = [trial for trial in found.trials if not trial.result]
    if others:
        page.gap()
        page.paragraph("Not tried", f"{units.number(len(others))} of {units.number(len(found.trials))}")
        by_reason: dict[str, list[str]] = {}
        for trial in others:
            by_reason.setdefault(trial.reason.removeprefix(trial.fix).strip(), []).append(trial.fix)
        for reason, names in by_reason.items():
            page.paragraph("", f"{reason}: {', '.join(names)}", "muted")
    if found.state != "complete":
        page.paragraph("State", f"{found.state}: the fixes after these were not tried", "unknown")


def trial_cells(trial: Trial) -> tuple[str, ...]:
    result = trial.result
    claimed = ", ".join(f"{factor:g}x" for factor in sorted(set(trial.promised.values())))
    return (
        trial.fix,
        claimed or "-",
        trial.catalogue,
        VERDICTS[trial.verdict],
        f"{result.ratio:.2f}x" if result and result.ratio else units.MISSING,
        f"{result.interval[0]:.2f} to {result.interval[1]:.2f}"
        if result and result.interval
        else units.MISSING,
    )
