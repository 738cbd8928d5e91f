"""The result of comparing runs: metric by metric, before and after."""

from __future__ import annotations

from typing import Literal

from perfdoctor.model._record import SCHEMA_VERSION, Record
from perfdoctor.model.judged import LedgerRow

ChangeVerdict = Literal["better", "worse", "no_significant_change", "unknown"]
Ground = Literal["requests", "runs", "pairs"]


class ComparedMetric(Record, frozen=True, kw_only=True):
    """`ratio` is after / before, and `interval` its 95 %; of a share both are after - before. None: unknown,
    `reason` says why. `n` counts what the interval rests on, on each side: values, runs or pairs.
    `per_token`: answers differ in length, so the time of each is divided by its tokens."""

    metric: str
    per_token: bool = False
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    verdict: ChangeVerdict = "unknown"
    reason: str = ""
    n: tuple[int, int] = (0, 0)


class Difference(Record, frozen=True, kw_only=True):
    """What is not the same on both sides. `setting`: of the target, and so perhaps what is tried."""

    what: Literal["machine", "load", "prompts", "model", "versions", "setting"]
    name: str
    before: str
    after: str


class CrossedLimit(Record, frozen=True, kw_only=True):
    """One limit of --fail-on. `crossed` None: the change has no value here, which nobody may pass by."""

    text: str
    crossed: bool | None
    reason: str


class ComparedPart(Record, frozen=True, kw_only=True):
    """What stands against what. `name` is empty unless there are several, as the levels of two sweeps.

    `ledger_before` and `ledger_after` are of the mean request, or of loading the model; empty unless both
    sides were diagnosed.
    """

    name: str = ""
    over: Ground = "requests"
    runs: tuple[int, int] = (1, 1)
    metrics: tuple[ComparedMetric, ...] = ()
    ledger_of: Literal["request", "load"] = "request"
    ledger_before: tuple[LedgerRow, ...] = ()
    ledger_after: tuple[LedgerRow, ...] = ()
    limits: tuple[CrossedLimit, ...] = ()
    notes: tuple[str, ...] = ()


class Comparison(Record, frozen=True, kw_only=True):
    """`compare --json`."""

    schema: int = SCHEMA_VERSION
    perfdoctor: str = ""
    before: str = ""  # the folders' names
    after: str = ""
    fail_on: str | None = None
    parts: tuple[ComparedPart, ...] = ()
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
