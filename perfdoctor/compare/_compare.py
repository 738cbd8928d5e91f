"""From two sides to a Comparison. Pure apart from the diagnoses that a ledger needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from perfdoctor import __version__, change, stats, units
from perfdoctor.change import Change
from perfdoctor.compare import _metric, limits
from perfdoctor.compare._difference import differences
from perfdoctor.compare._side import OneRun, Side
from perfdoctor.errors import CannotJudge
from perfdoctor.model import ChangeVerdict, ComparedMetric, ComparedPart, Comparison, Ground, LedgerRow

SAME_LENGTH = 0.02  # by which mean answers may differ in length and still be the same work; a guess

Runs = Sequence[OneRun]


def compare(before: Side, after: Side, fail_on: str | None = None) -> Comparison:
    """CannotJudge where the two have no level in common."""
    names = [name for name in before.parts if name in after.parts]
    if not names:
        raise CannotJudge(
            f"{before.path} and {after.path} have nothing in common",
            f"One has {_listed(before)}, the other {_listed(after)}.",
            "compare two runs, or two sweeps over the same levels",
        )
    missing = [name for name in (*before.parts, *after.parts) if name not in names]
    parts = tuple(_part(name, before.parts[name], after.parts[name], fail_on) for name in names)
    return Comparison(
        perfdoctor=__version__,
        before=before.path.name,
        after=after.path.name,
        fail_on=fail_on,
        parts=parts,
        differences=differences(before.runs[0].facts, after.runs[0].facts),
        notes=(
            *_prefixed("before: ", (*before.notes, *_unlike(before))),
            *_prefixed("after: ", (*after.notes, *_unlike(after))),
            *(f"{name}: on one side only" for name in missing),
        ),
    )


def compare_pairs(pairs: Sequence[tuple[OneRun, OneRun]]) -> ComparedPart:
    """Over pairs of runs that were made in turn."""
    before, after = zip(*pairs, strict=True)
    return _part("", before, after, None, paired=True)


def row_of_pairs(metric: str, pairs: Sequence[tuple[float, float]]) -> ComparedMetric:
    """Of (before, after) values of something that takes time."""
    was, now = zip(*pairs, strict=True)
    row = ComparedMetric(metric=metric, before=_middle(was), after=_middle(now), n=(len(was), len(now)))
    found = change.of_pairs([after / before for before, after in pairs])
    if found is None:
        return _unknown(row, _few_runs(metric, "pairs"))
    return _changed(row, found)


def _listed(side: Side) -> str:
    return ", ".join(name or "a run" for name in side.parts)


def _prefixed(prefix: str, texts: Sequence[str]) -> Iterator[str]:
    return (prefix + text for text in texts)


def _unlike(side: Side) -> tuple[str, ...]:
    """Runs of one side that are not runs of the same."""
    if set(side.parts) != {""}:
        return ()
    first, *others = side.runs
    found = {d.name for run in others for d in differences(first.facts, run.facts)}
    return (f"its runs are not alike in: {', '.join(sorted(found))}",) if found else ()


def _part(name: str, before: Runs, after: Runs, fail_on: str | None, paired: bool = False) -> ComparedPart:
    over: Ground = "pairs" if paired else "runs" if len(before) + len(after) > 2 else "requests"
    lengths = _lengths(before), _lengths(after)
    unequal = _unequal(*lengths)
    wanted = limits.parse(fail_on) if fail_on else ()
    metrics = dict.fromkeys((*_metric.SHOWN, *(limit.metric for limit in wanted)))
    rows = {metric: _row(metric, before, after, over, unequal) for metric in metrics}
    asked = {limit.metric for limit in wanted}
    was, now = _ledger(before), _ledger(after)
    return ComparedPart(
        name=name,
        over=over,
        runs=(len(before), len(after)),
        metrics=tuple(row for metric, row in rows.items() if metric in asked or _is_worth_it(row)),
        ledger_before=was if was and now else (),
        ledger_after=now if was and now else (),
        limits=tuple(limits.decide(limit, rows) for limit in wanted),
        notes=tuple(_notes(over, before, after, lengths)),
    )


def _is_worth_it(row: ComparedMetric) -> bool:
    """Without numbers that no side has, and p99s of too few requests to say anything of."""
    return (row.before, row.after) != (None, None) and not (row.metric.endswith("p99") and not row.interval)


def _ledger(runs: Runs) -> tuple[LedgerRow, ...]:
    return next((run.ledger for run in runs if run.ledger), ())


# ------------------------------------------------------------------------------ one number


def _row(metric: str, before: Runs, after: Runs, over: Ground, unequal: bool) -> ComparedMetric:
    per_token = _metric.is_per_token(metric, unequal)
    was = [_metric.value_of(metric, run, per_token) for run in before]
    now = [_metric.value_of(metric, run, per_token) for run in after]
    row = ComparedMetric(metric=metric, per_token=per_token, before=_middle(was), after=_middle(now))
    if row.before is None or row.after is None:
        sides = [side for side, value in (("before", row.before), ("after", row.after)) if value is None]
        return _unknown(row, f"no such value {' and '.join(sides)}")
    n = _counts(metric, before, after, over)
    row = msgspec.structs.replace(row, n=n, ratio=_moved(metric, row.before, row.after))
    if unequal and metric == "requests_per_s":
        return _unknown(row, "answers differ in length: output_tokens_per_s counts the work")
    found = _change(metric, before, after, over, per_token, was, now)
    if found is None:
        why = _metric.why_no_interval(metric, min(n)) if over == "requests" else _few_runs(metric, over)
        return _unknown(row, why)
    return _changed(row, found)


def _changed(row: ComparedMetric, found: Change) -> ComparedMetric:
    return msgspec.structs.replace(
        row, ratio=found.ratio, interval=(found.low, found.high), verdict=verdict_of(row.metric, found)
    )


def verdict_of(metric: str, found: Change) -> ChangeVerdict:
    if not found.significant:
        return "no_significant_change"
    return "better" if (found.ratio > found.none) == _metric.high_is_good(metric) else "worse"


def _unknown(row: ComparedMetric, reason: str) -> ComparedMetric:
    return msgspec.structs.replace(row, verdict="unknown", reason=reason)


def _moved(metric: str, was: float, now: float) -> float | None:
    if _metric.is_share(metric):
        return now - was
    return now / was if was > 0 else None


def _middle(values: Sequence[float | None]) -> float | None:
    """The median over runs, of those that have the value; None unless most have."""
    known = sorted(v for v in values if v is not None)
    if 2 * len(known) <= len(values):
        return None
    half = len(known) // 2
    return known[half] if len(known) % 2 else (known[half - 1] + known[half]) / 2


def _counts(metric: str, before: Runs, after: Runs, over: Ground) -> tuple[int, int]:
    if over == "requests":
        return _metric.count_of(metric, before[0]), _metric.count_of(metric, after[0])
    return len(before), len(after)


def _change(
    metric: str,
    before: Runs,
    after: Runs,
    over: Ground,
    per_token: bool,
    was: Sequence[float | None],
    now: Sequence[float | None],
) -> Change | None:
    if over == "requests":
        return _metric.change_of(metric, before[0], after[0], per_token)
    if _metric.is_share(metric):
        return _pooled_share(metric, before, after)
    if over == "pairs":
        return change.of_pairs([b / a for a, b in zip(was, now, strict=True) if a and b])
    return change.of_runs([v for v in was if v is not None], [v for v in now if v is not None])


def _pooled_share(metric: str, before: Runs, after: Runs) -> Change | None:
    """Failures are counted over all runs: most have none."""
    counts = []
    for runs in (before, after):
        pairs = [(_metric.value_of(metric, run), _metric.count_of(metric, run)) for run in runs]
        counts += [sum(round(v * n) for v, n in pairs if v is not None), sum(n for _, n in pairs)]
    return change.of_shares(*counts)


def _few_runs(metric: str, over: Ground) -> str:
    return f"fewer than three {over} have {metric}"


# ------------------------------------------------------------------------------ what must be said


def _lengths(runs: Runs) -> float | None:
    """Mean output tokens of an answer."""
    return stats.mean([float(r.output_tokens) for run in runs for r in run.answered if r.output_tokens])


def _unequal(was: float | None, now: float | None) -> bool:
    return was is not None and now is not None and abs(was - now) > SAME_LENGTH * max(was, now)


def _notes(
    over: Ground, before: Runs, after: Runs, lengths: tuple[float | None, float | None]
) -> Iterator[str]:
    if over == "requests":
        yield (
            "one run on each side: the intervals are of their requests, and how far two runs of the same "
            "differ is not known; three or more on each side tell"
        )
    elif min(len(before), len(after)) == 1:
        yield "one side is a single run: its spread is taken to be that of the other side's runs"
    if _unequal(*lengths):
        yield (
            f"unequal work: answers have {units.number(lengths[0])} tokens before and "
            f"{units.number(lengths[1])} after, so times to their end (e2e) are compared per token"
        )
    prompts = [
        stats.mean([float(r.prompt_tokens) for run in runs for r in run.answered if r.prompt_tokens])
        for runs in (before, after)
    ]
    if _unequal(prompts[0], prompts[1]):
        yield (
            f"prompts have {units.number(prompts[0])} tokens before and {units.number(prompts[1])} after: "
            "TTFT is of different work"
        )
