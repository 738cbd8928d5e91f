"""One side of a comparison: its runs, read from a folder."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdoctor import folders, latency, store, sweep
from perfdoctor.compare import _metric
from perfdoctor.errors import CannotJudge, RunFolderError
from perfdoctor.loadgen.summary import believable, summarise
from perfdoctor.model import LedgerRow, LoadSummary, RequestRecord, RunFacts


@dataclass(frozen=True)
class OneRun:
    """A run that can be compared. `answered` are the requests of its latencies, as they were sent."""

    path: Path
    facts: RunFacts
    summary: LoadSummary
    answered: tuple[RequestRecord, ...]

    @functools.cached_property
    def ledger(self) -> tuple[LedgerRow, ...]:
        """Of the mean request; empty unless it was a diagnosis that has one."""
        if self.facts.command == "load-test":
            return ()
        from perfdoctor.diagnosis import pipeline

        run = store.open_run(self.path)
        return pipeline.diagnose(run.facts, run.state, run.read_requests(), run.read_samples()).ledger.mean


@dataclass(frozen=True, slots=True)
class Side:
    """`parts`: runs by what they are of, '' unless the folder is a sweep."""

    path: Path
    parts: dict[str, tuple[OneRun, ...]]
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[OneRun, ...]:
        return tuple(run for runs in self.parts.values() for run in runs)


def read_side(path: str) -> Side:
    """A run, a sweep, or a folder of several runs, by its path, its name, or `latest`.

    CannotJudge where no run has anything to compare, as when the client was the limit in all of them.
    """
    folder = folders.latest(folders.RUN, folders.SWEEP) if path == "latest" else folders.named(path)
    notes: list[str] = []
    if sweep.is_sweep(folder):
        rows = [row for row in sweep.read(folder).levels if not row.repeated and row.error is None]
        unit = "/s" if sweep.read(folder).over == "rate" else " users"
        rows.sort(key=lambda row: row.level)
        parts = {f"{row.level:g}{unit}": _usable(folder, [folder / row.run], notes) for row in rows}
        parts = {name: runs for name, runs in parts.items() if runs}
    else:
        found = _usable(folder, _run_folders(folder), notes)
        parts = {"": found} if found else {}
    if not parts:
        raise CannotJudge(
            f"{folder} cannot be compared: {notes[0] if notes else 'it holds no finished level'}",
            "Such numbers are of the load generator, or of nothing, and not of the server.",
            f"see what is wrong with: perfdoctor report {folder}; then repeat it",
        )
    return Side(folder, parts, tuple(notes))


def _run_folders(folder: Path) -> list[Path]:
    if (folder / folders.RUN).is_file():
        return [folder]
    found = sorted(file.parent for file in folder.glob(f"*/{folders.RUN}"))
    if not found:
        raise RunFolderError(
            f"{folder} holds no run",
            f"There is no {folders.RUN} in it, nor in a folder below it.",
            "give a folder that perfdoctor wrote, or one that holds several such folders",
        )
    return found


def _usable(folder: Path, paths: Sequence[Path], notes: list[str]) -> tuple[OneRun, ...]:
    """Adds to `notes` what was left out, and what must be known of the others."""
    found = []
    for path in paths:
        run = read_run(path)
        name = path.name if path != folder else f"{folder.name}"
        if why := why_not(run.summary):
            notes.append(f"{name} is left out: {why}" if path != folder else why)
            continue
        if run.summary.state != "complete":
            notes.append(f"{name} is {run.summary.state}: its numbers are of a part of its load")
        if run.summary.trust.status == "degraded":
            notes.append(f"{name}: {'; '.join(run.summary.trust.reasons)}")
        found.append(run)
    return tuple(found)


def why_not(summary: LoadSummary) -> str:
    if not summary.requests.ok:
        return "no request of its load was answered"
    if summary.trust.status == "invalid":
        return "the measurement cannot be trusted: " + "; ".join(summary.trust.reasons)
    return ""


def mean_answer_s(run: OneRun, per_token: bool) -> float | None:
    """Mean time of an answer, or of a token of it."""
    return _metric.value_of("e2e_mean", run, per_token)


def read_run(path: Path) -> OneRun:
    run = store.open_run(path)
    records = run.read_requests()
    steady = [r for r in believable(run.facts, records) if r.phase == "steady"]
    answered = sorted(latency.ok_records(steady), key=lambda r: (r.sent_s or 0.0, r.id))
    return OneRun(path, run.facts, summarise(run.facts, run.state, records), tuple(answered))
