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
SECONDS, QUICK_SECONDS = 3.0, 1.0
UNPACED, UNPACED_TOKENS, QUICK_TOKENS = 32, 4000, 1000  # streams, and tokens of each


def calibrate(watch: Watch, quick: bool = False) -> Calibration:
    """Stops at the first level that was not measured rightly, twice: other work on the machine can only make
    one worse. It is part of the result; so is one that is not paced, at the end.
    """
    tokens = round(TOKENS_PER_S * (QUICK_SECONDS if quick else SECONDS))
    levels: list[CalibrationLevel] = []
    for streams in QUICK if quick else STREAMS:
        levels.append(_level_of(watch, streams, tokens))
        if levels[-1].limit != "none":
            again = _level_of(watch, streams, tokens)
            levels[-1] = again if again.limit == "none" else levels[-1]
        if levels[-1].limit != "none":
            break
    watch.begin(f"{UNPACED} streams as fast as they are taken", "a few seconds")
    levels.append(_level.drive(UNPACED, None, QUICK_TOKENS if quick else UNPACED_TOKENS))
    return conclude(levels, len(os.sched_getaffinity(0)), choose(Wire())[0])


def _level_of(watch: Watch, streams: int, tokens: int) -> CalibrationLevel:
    what = "1 stream" if streams == 1 else f"{streams} streams"
    watch.begin(f"{what} of {TOKENS_PER_S:.0f} tokens/s", f"about {tokens / TOKENS_PER_S + 1:.0f} s")
    return _level.drive(streams, TOKENS_PER_S, tokens)


def conclude(levels: Sequence[CalibrationLevel], cores: int, transport: str) -> Calibration:
    """The ceiling is the highest paced level without a limit; above it is whose limit was met."""
    paced = [level for level in levels if level.tokens_per_s]
    good = [level for level in paced if level.limit == "none"]
    last = paced[-1] if paced else None
    best = good[-1] if good else None
    unpaced = next((level for level in levels if not level.tokens_per_s), None)
    limit = "not_reached" if last is None or last.limit == "none" else last.limit
    return Calibration(
        cores=cores,
        transport=transport,
        levels=tuple(levels),
        ceiling_streams=best.streams if best else None,
        ceiling_events_per_s=best.events_per_s if best else None,
        peak_events_per_s=unpaced.events_per_s if unpaced else None,
        error_s=best.lag_p99_s if best else None,
        limit=limit,
        summary=_summary(best, last),
    )


def _summary(best: CalibrationLevel | None, last: CalibrationLevel | None) -> str:
    if best is None:
        why = f" ({last.reason})" if last else ""
        return f"not even one stream was measured within {units.seconds(_level.GOOD_LAG_S)}{why}"
    told = (
        f"{best.streams} streams of {best.tokens_per_s:g} tokens/s are measured here to within "
        f"{units.seconds(best.lag_p99_s)} at p99"
    )
    if last is None or last.limit == "none":
        return f"{told}; more was not tried"
    if last.limit == "server":
        return f"{told}; at {last.streams} the server on the same machine was the limit, not the client"
    return f"{told}; at {last.streams}, {last.reason}"
