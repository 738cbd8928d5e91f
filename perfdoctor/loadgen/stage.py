"""What a driver is asked to do next, and what it can tell while it does it."""

from __future__ import annotations

from dataclasses import dataclass, field

from perfdoctor.model import PhaseName


@dataclass(frozen=True, slots=True)
class Share:
    """The part of the load that one driver process sends: every `workers`-th request from `worker` on."""

    worker: int = 0
    workers: int = 1
    first: int = 0  # requests that another driver sent before: their ids and prompts are used up

    def of(self, total: int) -> int:
        """How many of `total` things are ours; over all workers they sum to `total`."""
        return len(range(self.worker, total, self.workers)) if self.worker < self.workers else 0


@dataclass(frozen=True, slots=True)
class Stage:
    """One phase of load: until `requests` are sent or `duration_s` is over, whichever comes first.

    A lead is load of the same kind before that, whose requests are of phase `warmup`. It lasts until
    `lead_requests` are sent and `lead_s` is over, and what is then open stays open: no pause, no burst.
    """

    phase: PhaseName
    concurrency: int | None  # users of a closed loop; None: an open loop, by the schedule of the load
    requests: int | None = None
    duration_s: float | None = None
    headers: dict[str, str] = field(default_factory=dict)
    output_tokens: int | None = None  # None: the load's
    kind: str | None = None  # of an experiment; see RequestRecord.kind
    prompt_tokens: int | None = None  # None: the load's
    same_prompt: bool = False  # all requests say the same
    first_tokens: tuple[int, ...] = ()  # the same of more requests, which come before those
    lead_requests: int = 0
    lead_s: float = 0.0
    ramp_up_s: float = 0.0  # over which the users start
    start_ns: int | None = None  # perf_counter_ns at which it begins, the same for all workers; None: now


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counts of the current stage, for the live line. `tokens` are chunks while an answer is open."""

    done: int = 0
    ok: int = 0
    failed: int = 0
    in_flight: int = 0
    tokens: int = 0
    elapsed_s: float = 0.0
    workers: int = 1  # driver processes that these are the counts of
