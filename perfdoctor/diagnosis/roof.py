"""How far decoding is from what the hardware allows: physical, achievable, and the term that binds.

limit of a step = max(bytes / bandwidth, arithmetic / tensor rate);   share = limit / measured step
"""

from __future__ import annotations

from perfdoctor.diagnosis.measure import Table
from perfdoctor.model import Roof, RunFacts

BINDS = 0.50  # guess: a term that fills half of the step is what to shorten first


def measure_roof(facts: RunFacts, table: Table) -> Roof:
    """Refuses, with the reason, when bytes per step, bandwidth or pace are unknown."""
    memory, physical = table["roof.memory.share"], table["roof.physical.share"]
    if memory.value is None:
        return Roof(missing=memory.missing)
    compute = table["roof.compute.share"].value or 0.0
    return Roof(
        physical_share=None if physical.value is None else max(physical.value, compute),
        achievable_share=max(memory.value, compute),
        binding=_binding(table, memory.value, compute),
        assumptions=_assumptions(facts, table),
    )


def _binding(table: Table, memory: float, compute: float) -> str | None:
    """None when no term fills half of the step and host time was not measured: nothing by elimination."""
    terms = {"memory": memory, "compute": compute, "launch": table["step.launch_gap.share"].value or 0.0}
    name = max(terms, key=lambda t: terms[t])
    return name if terms[name] >= BINDS else None


def _assumptions(facts: RunFacts, table: Table) -> tuple[str, ...]:
    target = facts.target
    batch = table["server.batch.mean"].value
    context = table["context.mean"].value
    ceiling = table["roof.achievable.rate"]
    known = [
        f"weights in {target.dtype}" if target.dtype else "dtype as the server reports its size",
        f"{batch:.1f} requests a step" if batch else "one request a step",
        f"{context:.0f} tokens of context" if context else "no KV cache traffic counted",
        f"bandwidth: {ceiling.source}",
        "one token a step (no speculative decoding), one device, all weights used by every token",
    ]
    if target.step_bytes and not table["gpu.used"].value and target.step_bytes < 64e6:
        known.append("weights this small fit in CPU caches, so memory is no limit for them")
    return tuple(known)
