"""The base of all records, and the few words that several of them share."""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA_VERSION = 1

ProbeStatus = Literal["ok", "denied", "unsupported", "absent", "stale"]
RuleStatus = Literal["hit", "clear", "unknown"]
Confidence = Literal["low", "medium", "high"]
PhaseName = Literal["load", "warmup", "baseline", "steady", "experiment", "profile", "watch"]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all records. Unknown JSON keys are ignored, since changes are additive only."""
