"""Time of service in which the model could not go on: taken from prefill and decode before they are divided.

Each share is of the time the server spent on a request. The three exclude one another for one thread: it
stands in the run queue, or sleeps until storage answers, or sleeps until the interpreter lock is free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.diagnosis.signals import cpu, gil, health, memory, stalls

SILENT = 0.10  # share of the time a question goes unanswered; the limit of event-loop-blocked
LEAST = 0.01  # below one percent, readings of different instants say nothing


@dataclass(frozen=True, slots=True)
class Loss:
    """A ledger row: its share of service time, and what said so."""

    row: str
    share: float
    source: str


def service_losses(obs: Observations) -> tuple[Loss, ...]:
    """Losses in order of trust, together never more than the whole."""
    left, found = 1.0, []
    for row, share_of, source in _SOURCES:
        try:
            share = min(left, share_of(obs))
        except NoValue:
            continue
        if share >= LEAST:
            found.append(Loss(row, share, source))
            left -= share
    return tuple(found)


def _gil_wait(obs: Observations) -> float:
    """While another thread has the lock, a model that runs Python stands still."""
    return gil.other.of(obs)


def _loop_stall(obs: Observations) -> float:
    """Only where the front end was silent too: an engine's long step is no blocked loop.

    How long it was silent is asked a few times a second and is the coarser number of the two.
    """
    return stalls.shared.of(obs) if health.unanswered.of(obs) >= SILENT else 0.0


_SOURCES: tuple[tuple[str, Callable[[Observations], float], str], ...] = (
    ("runq_delay", cpu.runq_wait.of, "schedstat of the serving thread"),
    ("io_stall", memory.blocked.of, "the server's threads waiting for storage"),
    ("gil_wait", _gil_wait, "py-spy: the lock in the hands of threads that do not run the model"),
    ("loop_stall", _loop_stall, "pauses that all streams and the front end share"),
)
