"""Rising loads against a server with a known pace, until one of the two ends is too slow."""

from __future__ import annotations

import os
from collections.abc import Sequence

from perfdoctor import units
from perfdoctor.loadgen.calibrate import _level
from perfdoctor.loadgen.transports._choose import choose
from perfdoctor.model import Calibration, CalibrationLevel, Wire
from perfdoctor.progress import Watch

TOKENS_PER_S = 50.0
STREAMS = (1, 16, 64, 256, 512, 1024)
QUICK = (1, 64, 256)
SECONDS, QUICK_SECONDS = 3.0, 1.5


def calibrate(watch: Watch, quick: bool = False) -> Calibration:
    """Stops at the first level that was not measured rightly; it is part of the result."""
    seconds = QUICK_SECONDS if quick else SECONDS
    levels: list[CalibrationLevel] = []
    for streams in QUICK if quick else STREAMS:
        what = "1 stream" if streams == 1 else f"{streams} streams"
        watch.begin(f"{what} of {TOKENS_PER_S:.0f} tokens/s", f"about {seconds + 1:.0f} s")
        levels.append(_level.drive(streams, TOKENS_PER_S, seconds))
        if levels[-1].limit != "none":
            break
    return conclude(levels, len(os.sched_getaffinity(0)), choose(Wire())[0])


def conclude(levels: Sequence[CalibrationLevel], cores: int, transport: str) -> Calibration:
    """The ceiling is the highest level without a limit; above it is whose limit was met."""
    good = [level for level in levels if level.limit == "none"]
    last = levels[-1] if levels else None
    best = good[-1] if good else None
    limit = "not_reached" if last is None or last.limit == "none" else last.limit
    return Calibration(
        cores=cores,
        transport=transport,
        levels=tuple(levels),
        ceiling_streams=best.streams if best else None,
        ceiling_events_per_s=best.events_per_s if best else None,
        error_s=best.lag_p99_s if best else None,
        limit=limit,
        summary=_summary(best, last),
    )


def _summary(best: CalibrationLevel | None, last: CalibrationLevel | None) -> str:
    if best is None:
        why = f" ({last.reason})" if last else ""
        return f"not even one stream was measured within {units.seconds(_level.GOOD_LAG_S)}{why}"
    told = (
        f"{best.streams} streams of {best.tokens_per_s:.0f} tokens/s are measured here to within "
        f"{units.seconds(best.lag_p99_s)} at p99"
    )
    if last is None or last.limit == "none":
        return f"{told}; more was not tried"
    if last.limit == "server":
        return f"{told}; at {last.streams} the server on the same machine was the limit, not the client"
    return f"{told}; at {last.streams}, {last.reason}"
