"""How a second of reading prompts divides; the counterpart of decode.py.

A short prompt costs what a decode step costs, since starting the same operators is most of it: its time is
divided as a step's is. A long one is seen in the GPU's own counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.diagnosis.signals import gpu, prefill, step

LIKE_A_STEP = 1.5  # guess: up to half again a step's length, a prefill is one


@dataclass(frozen=True, slots=True)
class PrefillShares:
    """Shares by ledger row, summing to 1 at most."""

    shares: Mapping[str, float]
    source: str


def prefill_shares(obs: Observations) -> PrefillShares:
    """Never fails: with no source at all, reading the prompt stays one undivided row."""
    for source in (_by_counters, _like_a_step):
        try:
            return source(obs)
        except NoValue:
            continue
    return PrefillShares({"prefill": 1.0}, "nothing here can divide it")


def _by_counters(obs: Observations) -> PrefillShares:
    busy = min(1.0, prefill.BUSY.of(obs))
    memory = min(busy, prefill.DRAM.of(obs) / gpu.DRAM_FULL)
    shares = {"prefill.memory": memory, "prefill.compute": busy - memory, "prefill.launch_gap": 1 - busy}
    return PrefillShares(shares, "GPU counters while prompts were read")


def _like_a_step(obs: Observations) -> PrefillShares:
    if prefill.mean.of(obs) > LIKE_A_STEP * step.wall_s(obs):
        raise NoValue("a prefill takes longer than a decode step")
    gap = step.launch_gap.of(obs)
    shares = {"prefill.launch_gap": gap, "prefill": 1 - gap}
    return PrefillShares(shares, "a prefill as long as a decode step, divided like the profiled one")
