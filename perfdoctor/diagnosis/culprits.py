"""Who was seen at it: the thread or the line behind a finding, where a probe could name one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from perfdoctor import units
from perfdoctor.diagnosis.observations import NoValue, Observations

MOST = 3
RARE = 0.05  # of the time; a thread that held the lock for less is not named


def find(cls: str, obs: Observations) -> tuple[str, ...]:
    """At most three, the most frequent first; empty where nobody was seen."""
    seen = _SEEN.get(cls)
    try:
        return seen(obs)[:MOST] if seen else ()
    except NoValue:
        return ()


def _blockers(obs: Observations) -> tuple[str, ...]:
    """Stacks of the main thread, taken while the front end was silent."""
    window = obs.phase("steady")
    stacks = Counter(
        s.labels.get("stack", "") for s in obs.samples("stall") if window.start_s <= s.at_s <= window.end_s
    )
    return tuple(f"{stack} in {n} of {stacks.total()} looks" for stack, n in stacks.most_common() if stack)


def _holders(obs: Observations) -> tuple[str, ...]:
    """Threads by how much of the time they held the interpreter lock."""
    window = obs.phase("steady")
    held: Counter[str] = Counter()
    for sample in obs.samples("gil.thread"):
        if window.start_s <= sample.at_s <= window.end_s:
            held[sample.labels.get("thread", "")] += sample.values.get("held_share") or 0.0  # type: ignore[assignment]
    windows = {s.at_s for s in obs.samples("gil") if window.start_s <= s.at_s <= window.end_s}
    shares = [(name, total / max(1, len(windows))) for name, total in held.most_common()]
    return tuple(f"thread {name}: {units.share(share)}" for name, share in shares if share >= RARE)


_SEEN: dict[str, Callable[[Observations], tuple[str, ...]]] = {"event-loop": _blockers, "gil": _holders}
