"""The result of a sweep: one load test per level, and what they say together."""

from __future__ import annotations

from typing import Literal

from perfdoctor.model._record import SCHEMA_VERSION, Record
from perfdoctor.model.judged import Trust

Over = Literal["concurrency", "rate"]
Decision = Literal["met", "missed", "not_decided"]


class SweepLevel(Record, frozen=True, kw_only=True):
    """One run of a sweep. `level` is a number of users, or of requests a second.

    Percentiles are of the requests that succeeded; a p95 is None below 20 of them, where it would be one of
    the largest values. `repeated`: a later run of the same level takes its place.
    """

    level: float
    run: str  # the folder below the sweep's
    why: Literal["given", "doubled", "repeated", "between"]
    state: str = "running"
    repeated: bool = False
    requests: int = 0  # of the steady phase
    failed: int = 0
    cut_off: int = 0  # still open at the end
    sent_per_s: float | None = None  # of a rate: as it came out
    served_share: float | None = None  # of that rate, by how the answers got longer; None: too few requests
    requests_per_s: float | None = None
    output_tokens_per_s: float | None = None
    ttft_p50_s: float | None = None
    ttft_p95_s: float | None = None
    tpot_p50_s: float | None = None
    e2e_p50_s: float | None = None
    e2e_p95_s: float | None = None
    trust: Trust | None = None
    slo: Decision | None = None  # by more than chance; None: no SLO was given
    slo_met: bool | None = None  # by the values as they are
    slo_reasons: tuple[str, ...] = ()  # the limits that are missed or not decided, with the values
    stopped: str | None = None  # the limit on failures that ended the load
    error: str | None = None  # why the level could not be measured
    exit_code: int = 0  # of that error


class Knee(Record, frozen=True, kw_only=True):
    """Where more load stops bringing more throughput. `level` None carries its reason."""

    status: Literal["found", "not_reached", "unknown"]
    level: float | None = None
    between: tuple[float, float] | None = None  # the levels run on both sides of it; None: none on one side
    requests_per_s: float | None = None
    method: str = ""
    source: str = ""
    reason: str = ""


class WithinSlo(Record, frozen=True, kw_only=True):
    """The highest load within the SLO. `found`: a level above it is not; `not_reached`: all that were tried
    are within; `none`: not one is; `not_decided`: of none could it be said."""

    status: Literal["found", "not_reached", "none", "not_decided"]
    level: float | None = None
    requests_per_s: float | None = None
    missed_at: float | None = None  # the lowest level that misses it
    not_decided_at: tuple[float, ...] = ()  # levels above it that chance alone may explain
    reason: str = ""


class Sweep(Record, frozen=True, kw_only=True):
    """`sweep --json`, and sweep.json of its folder. `levels` in the order in which they were run."""

    schema: int = SCHEMA_VERSION
    sweep: str = ""  # the folder's name
    perfdoctor: str = ""
    argv: tuple[str, ...] = ()
    target: str = ""
    state: str = "running"  # complete, interrupted
    over: Over = "concurrency"
    slo_text: str | None = None
    levels: tuple[SweepLevel, ...] = ()
    knee: Knee | None = None
    slo: WithinSlo | None = None
    ended: str = ""  # why no further level was run
    notes: tuple[str, ...] = ()
