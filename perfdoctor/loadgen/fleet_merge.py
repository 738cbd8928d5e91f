"""One answer out of several driver processes'. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from perfdoctor.loadgen.stage import Snapshot
from perfdoctor.model import ClientFacts, Phase

_SUMS = {"ports_used", "redialled", "workers"}
_LEAST = {"fds_limit", "ports_limit"}


def facts(parts: Sequence[ClientFacts]) -> ClientFacts:
    """The worst of each reading, since a slow process spoils its share of the numbers. What all draw from one
    pool is added up; the pool is the smallest seen. Never empty; None only where no part knows."""
    merged = {name: _worst(name, [getattr(p, name) for p in parts]) for name in ClientFacts.__struct_fields__}
    return msgspec.structs.replace(parts[0], **merged)


def _worst(name: str, values: list[float | str | None]) -> float | str | None:
    known = [v for v in values if v is not None]
    numbers = [v for v in known if not isinstance(v, str)]
    if not numbers:
        return known[0] if known else None
    if name in _SUMS:
        return sum(numbers)
    return min(numbers) if name in _LEAST else max(numbers)


def snapshot(parts: Sequence[Snapshot]) -> Snapshot:
    """Counts added up; the time is that of the stage."""
    return Snapshot(
        done=sum(p.done for p in parts),
        ok=sum(p.ok for p in parts),
        failed=sum(p.failed for p in parts),
        in_flight=sum(p.in_flight for p in parts),
        tokens=sum(p.tokens for p in parts),
        elapsed_s=max((p.elapsed_s for p in parts), default=0.0),
        workers=len(parts),
    )


def phase(parts: Sequence[Phase]) -> Phase:
    """From the first hand-over to the last end, so that every request of the phase lies inside. Not empty."""
    return msgspec.structs.replace(
        parts[0], start_s=min(p.start_s for p in parts), end_s=max(p.end_s for p in parts)
    )
