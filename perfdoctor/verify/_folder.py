"""The folder of a verification, and its result as a function of it."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from perfdoctor import compare, disk, folders, store
from perfdoctor.diagnosis.catalogue import load_fixes
from perfdoctor.errors import RunFolderError
from perfdoctor.model import ComparedPart, Diagnosis, LedgerRow, Trials, TriedRun, TriedSide, Verification
from perfdoctor.verify import _outcome
from perfdoctor.verify._order import pairs_of

_Kind = TypeVar("_Kind", Verification, Trials)


def is_verify(folder: Path) -> bool:
    return (folder / folders.VERIFY).is_file()


def is_trials(folder: Path) -> bool:
    return (folder / folders.TRIALS).is_file()


def write(folder: Path, found: Verification | Trials) -> None:
    name = folders.VERIFY if isinstance(found, Verification) else folders.TRIALS
    disk.write_atomically(folder / name, msgspec.json.format(msgspec.json.encode(found), indent=1))


def read(folder: Path) -> Verification:
    """A verification again, its numbers from its run folders."""
    found = _stored(folder, folders.VERIFY, Verification)
    if found.state == "running" and not disk.is_claimed(folder):
        found = msgspec.structs.replace(found, state="interrupted")
    return settled(found, folder)


def read_trials(folder: Path) -> Trials:
    """The table again, each line from its own folder."""
    found = _stored(folder, folders.TRIALS, Trials)
    if found.state == "running" and not disk.is_claimed(folder):
        found = msgspec.structs.replace(found, state="interrupted")
    return found


def _stored(folder: Path, name: str, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode((folder / name).read_bytes(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
        raise RunFolderError(
            f"{folder / name} cannot be read: {error}",
            "It was changed or cut off, or belongs to another user.",
            f"its runs may be whole: list them with ls {folder}, and compare them",
        ) from error


def settled(found: Verification, folder: Path) -> Verification:
    """With the values of its runs, what they say together, and both ledgers."""
    runs = {run.run: _read_run(folder / run.run) for run in found.runs if run.run}
    kept = tuple(_marked(run, runs.get(run.run)) for run in found.runs)
    part = _loaded(kept) if found.metric == "load_s" else _compared(kept, runs)
    per_token = part is not None and any(row.per_token for row in part.metrics)
    kept = tuple(_valued(run, runs.get(run.run), per_token) for run in kept)
    before, after = (_ledger(side, folder) for side in (found.before, found.after))
    was, now = (_rows(found, diagnosis) for diagnosis in (before, after))
    if part and was and now:
        part = msgspec.structs.replace(part, ledger_before=was, ledger_after=now)
    fix = next((fix for fix in load_fixes() if fix.id == found.fix), None)
    bound, source = _outcome.bound_of(fix, was)
    return _outcome.concluded(
        msgspec.structs.replace(
            found,
            runs=kept,
            compared=part,
            before=_named(found.before, before),
            after=_named(found.after, after),
            bound=bound,
            bound_source=source,
        )
    )


def _rows(found: Verification, diagnosis: Diagnosis | None) -> tuple[LedgerRow, ...]:
    """Of what the metric measures; of loading, without the imports."""
    if diagnosis is None:
        return ()
    if found.metric == "e2e_mean":
        return diagnosis.ledger.mean
    rows = [row for row in diagnosis.ledger.load if row.row != "import"]
    whole = sum(row.seconds for row in rows)
    return tuple(msgspec.structs.replace(row, share=row.seconds / whole) for row in rows) if whole else ()


def _loaded(kept: tuple[TriedRun, ...]) -> ComparedPart | None:
    """The same table for starts, which have no run folders."""
    pairs = pairs_of(kept)
    if not pairs:
        return None
    values = [(b.value, a.value) for b, a in pairs if b.value and a.value]
    return ComparedPart(
        over="pairs",
        runs=(len(pairs), len(pairs)),
        metrics=(compare.row_of_pairs("load_s", values),),
        ledger_of="load",
    )


def judged(run: TriedRun, folder: Path) -> TriedRun:
    """Whether it counts, as soon as it is made."""
    return _marked(run, _read_run(folder / run.run))


def _read_run(path: Path) -> compare.OneRun | None:
    return compare.read_run(path) if (path / folders.RUN).exists() else None


def _marked(run: TriedRun, found: compare.OneRun | None) -> TriedRun:
    """A run that is there and does not count says why."""
    if found is None:
        return run
    cut_off = "" if found.summary.state == "complete" else f"it is {found.summary.state}"
    why = cut_off or compare.why_not(found.summary)
    return msgspec.structs.replace(run, left_out=why, value=compare.mean_answer_s(found, False))


def _valued(run: TriedRun, found: compare.OneRun | None, per_token: bool) -> TriedRun:
    if found is None:
        return run
    return msgspec.structs.replace(run, value=compare.mean_answer_s(found, per_token))


def _compared(kept: tuple[TriedRun, ...], runs: dict[str, compare.OneRun | None]) -> ComparedPart | None:
    pairs = [(runs[b.run], runs[a.run]) for b, a in pairs_of(kept)]
    return compare.compare_pairs(pairs) if pairs else None  # type: ignore[arg-type]


def _ledger(side: TriedSide, folder: Path) -> Diagnosis | None:
    if not side.ledger or not (folder / side.ledger / folders.RUN).exists():
        return None
    from perfdoctor.diagnosis import pipeline

    run = store.open_run(folder / side.ledger)
    return pipeline.diagnose(run.facts, run.state, run.read_requests(), run.read_samples())


def _named(side: TriedSide, diagnosis: Diagnosis | None) -> TriedSide:
    """With what its own diagnosis names as the bottleneck, or else the largest row of its ledger."""
    if diagnosis is None:
        return side
    found = [f"{f.rule}: {f.summary}" for f in diagnosis.findings if f.of == "request" and not f.explained_by]
    rows = sorted(diagnosis.ledger.mean, key=lambda row: -row.share)
    largest = f"{rows[0].row}, {rows[0].share:.0%} of a request" if rows else diagnosis.verdict.summary
    return msgspec.structs.replace(side, bottleneck=(found or [largest])[0])
