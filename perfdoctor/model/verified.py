"""The result of trying a fix: with it and without it, in turn, on this machine."""

from __future__ import annotations

from typing import Literal

from perfdoctor.model._record import SCHEMA_VERSION, Record
from perfdoctor.model.compared import ComparedPart

SideName = Literal["before", "after"]
Effect = Literal["helps", "no_effect", "hurts"]
FixVerdict = Literal["helps", "no_effect", "hurts", "changes_output", "cannot_run", "not_judged"]


class TriedSide(Record, frozen=True, kw_only=True):
    """One side, and what it cost to get it going. `settings`, `command` or `endpoint` says what it is; none
    of them is the local server as it is."""

    settings: dict[str, str] = {}
    command: str | None = None
    endpoint: str | None = None
    start_s: float | None = None  # until it answered; None: it was up
    compile_s: float | None = None  # of that, where the local server told
    first_answer_s: float | None = None  # of the first request ever
    next_answer_s: float | None = None  # of the same request again
    ledger: str = ""  # the folder of its diagnosis, below the verification's
    bottleneck: str = ""  # what that names


class Outputs(Record, frozen=True, kw_only=True):
    """Greedy answers to the same prompts. `first` is the least index of a token that differs."""

    prompts: int = 0
    tokens: int = 0  # asked of each
    differ: int = 0  # prompts
    first: int | None = None
    differ_together: int = 0  # of the after side, asked several at once
    unsteady: int = 0  # of the before side, from one time to the next: then nothing can be said of those
    missing: str | None = None


class TriedRun(Record, frozen=True, kw_only=True):
    """A run of one side. `pair` 0: the one that makes equal pairs. `value`: of the metric, in seconds."""

    side: SideName
    pair: int
    run: str = ""  # the folder below the verification's
    value: float | None = None
    left_out: str = ""  # why it does not count


class Verification(Record, frozen=True, kw_only=True):
    """`verify --json`, and verify.json of its folder.

    `ratio` is the time without the fix over the time with it, as of `measured` in the catalogue: above 1 it
    helped. `noise`: so far from 1, as a factor, that ratio would lie by chance if the sides were equal.
    `effect` is of the speed alone; `verdict` puts first that answers change.
    """

    schema: int = SCHEMA_VERSION
    verify: str = ""
    perfdoctor: str = ""
    argv: tuple[str, ...] = ()
    state: Literal["running", "complete", "interrupted", "failed"] = "running"
    error: str | None = None
    fix: str = ""
    title: str = ""
    claim: str = ""
    promised: dict[str, float] = {}
    catalogue: str = ""  # the catalogue's verdict on the fix; empty for a fix that is not in it
    model: str = ""
    hardware: str = ""
    versions: str = ""
    load: str = ""
    seed: int = 0
    pairs: int = 0  # as asked for
    before: TriedSide = TriedSide()
    after: TriedSide = TriedSide()
    runs: tuple[TriedRun, ...] = ()
    outputs: Outputs = Outputs(missing="not asked")
    bound: tuple[float, float] | None = None
    bound_source: str = ""
    metric: Literal["e2e_mean", "load_s"] = "e2e_mean"
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    noise: float | None = None
    effect: Effect | None = None
    verdict: FixVerdict = "not_judged"
    reason: str = ""
    compared: ComparedPart | None = None
    notes: tuple[str, ...] = ()


class Trial(Record, frozen=True, kw_only=True):
    """A line of `verify --all`: what the documents promise, and what was measured here."""

    fix: str
    title: str
    catalogue: str
    claim: str = ""
    promised: dict[str, float] = {}
    verdict: FixVerdict = "not_judged"
    reason: str = ""
    folder: str = ""
    result: Verification | None = None


class Trials(Record, frozen=True, kw_only=True):
    """`verify --all --json`, and trials.json of its folder."""

    schema: int = SCHEMA_VERSION
    verify: str = ""
    perfdoctor: str = ""
    argv: tuple[str, ...] = ()
    state: Literal["running", "complete", "interrupted"] = "running"
    model: str = ""
    hardware: str = ""
    trials: tuple[Trial, ...] = ()
