"""What the load generator can do on this machine: its ceiling and its measurement error."""

from __future__ import annotations

from typing import Literal

from perfdoctor.model._record import SCHEMA_VERSION, Record


class CalibrationLevel(Record, frozen=True, kw_only=True):
    """One load against a server that stamps what it sends. Lags are of events, from sent to stamped here."""

    streams: int
    tokens_per_s: float | None  # of each stream, as paced; None: as fast as the two ends can
    events: int = 0
    lost: int = 0  # sent by the server and in no record
    offered_per_s: float | None = None  # events sent while all streams were open
    events_per_s: float | None = None  # events stamped in that time
    lag_p50_s: float | None = None
    lag_p99_s: float | None = None
    lag_max_s: float | None = None
    server_late_p99_s: float | None = None  # how far behind its own pace the server sent
    ttft_error_p99_s: float | None = None
    tpot_error_p99_s: float | None = None
    cpu_share: float | None = None  # of one core, the driver's
    cpu_per_event_s: float | None = None
    server_cpu_share: float | None = None  # of one core, the server's
    trust: Literal["valid", "degraded", "invalid"] = "valid"
    limit: Literal["none", "client", "server"] = "none"
    reason: str = ""


class Calibration(Record, frozen=True, kw_only=True):
    """`perfdoctor calibrate --json`. The ceiling is the highest level that was still measured rightly."""

    schema: int = SCHEMA_VERSION
    cores: int = 0
    transport: str | None = None
    levels: tuple[CalibrationLevel, ...] = ()
    ceiling_streams: int | None = None
    ceiling_events_per_s: float | None = None
    peak_events_per_s: float | None = None  # of the unpaced level, where lags mean nothing
    error_s: float | None = None  # p99 lag at the ceiling: what a time measured here may be late
    limit: Literal["client", "server", "not_reached"] = "not_reached"
    summary: str = ""
