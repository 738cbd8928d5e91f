"""One thread per probe on an absolute schedule; stamps every sample with its own cost and lateness.

A probe may be missing, be denied or fail alone: it costs its own samples, never the run. Errors cost one
sample each, five in a row end the probe. One that gets too expensive is thinned out.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from perfdoctor import registry
from perfdoctor.clock import Clock
from perfdoctor.model import Metric, ProbeState, Sample
from perfdoctor.probes._probe import Gap, NotYet, Probe, Reader, Reading, Unavailable
from perfdoctor.probes._subject import Subject

__all__ = ["Sampler", "Subject"]

MAX_ERRORS = 5  # in a row
RETRY_S = 0.5  # how soon a probe with nothing to read yet asks again
ALLOWANCE_S = 0.02  # CPU a probe may spend ahead of its share: first reads open files
WHOLE_SHARE = 0.02  # of a core, for all probes together
LONGEST_WAIT_S = 2.0
LONGEST_WAIT_PERIODS = 4
JOIN_S = 6.0  # a read may be waiting for a server or a child process

REMOTE_WHY = "the server runs on another host"
REMOTE_ENABLE = "run perfdoctor on the server's own host"


class Schedule:
    """Due times on a fixed grid; a late or costly read skips slots instead of shifting them.

    CPU time is paid from a credit that grows by `max_share` of the wall time, up to a small allowance. A
    probe in debt waits until it has earned it back, but no longer than a bound: one bad second early in a
    run, such as a driver that wakes up, must not blind the rest of it.
    """

    def __init__(self, period_s: float, max_share: float, start_s: float) -> None:
        self.due_s = start_s
        self._period_s, self._max_share = period_s, max_share
        self._credit_s, self._paid_to_s = ALLOWANCE_S, start_s
        self._longest_wait_s = max(LONGEST_WAIT_S, LONGEST_WAIT_PERIODS * period_s)

    def advance(self, now_s: float, cost_s: float, scale: float = 1.0) -> None:
        """To the next slot ahead of now at which the read that just ended is paid for.

        `scale`: the part of its share that the others leave it.
        """
        share = self._max_share * scale
        earned_s = self._credit_s + (now_s - self._paid_to_s) * share
        debt_limit_s = -self._longest_wait_s * share
        self._credit_s = max(debt_limit_s, min(ALLOWANCE_S, earned_s) - cost_s)
        self._paid_to_s = now_s
        affordable_s = now_s + max(0.0, -self._credit_s / share)
        slots = math.ceil((affordable_s - self.due_s) / self._period_s)
        self.due_s += max(1, slots) * self._period_s

    def retry(self, now_s: float) -> None:
        """Soon again, and the grid starts over from there."""
        self.due_s = now_s + min(self._period_s, RETRY_S)


class Budget:
    """The CPU of all probes together. Where those that run claim more than the whole, each gives up the same
    part of its share; one that is missing here claims nothing."""

    def __init__(self, whole: float = WHOLE_SHARE) -> None:
        self._whole = whole
        self._claims: dict[str, float] = {}

    def claim(self, name: str, share: float) -> None:
        self._claims[name] = share

    def release(self, name: str) -> None:
        self._claims.pop(name, None)

    @property
    def scale(self) -> float:
        claimed = sum(list(self._claims.values()))
        return min(1.0, self._whole / claimed) if claimed else 1.0


class Worker:
    """Runs one probe. All its methods are called by its own thread but `state`, after the join."""

    def __init__(
        self,
        probe: Probe,
        subject: Subject,
        clock: Clock,
        emit: Callable[[Sample], None],
        emit_stacks: Callable[[str], None],
        rate_hz: float,
        stop: threading.Event,
        budget: Budget,
        cpu_now: Callable[[], float] = time.thread_time,
    ) -> None:
        self.probe, self._subject, self._clock = probe, subject, clock
        self._emit, self._emit_stacks, self._stop, self._cpu_now = emit, emit_stacks, stop, cpu_now
        self._budget = budget
        self._period_s = 1 / min(rate_hz, probe.max_hz)
        self._reader: Reader | None = None
        self._end: Unavailable | None = None  # why it stopped for good
        self._waiting: NotYet | None = None
        self._in_a_row = 0
        self._has_read = False  # nothing may be what there was
        self.samples = self.errors = 0
        self.cost_s = self.late_max_s = 0.0

    @property
    def settled(self) -> bool:
        """It has read, or never will."""
        return self._has_read or self._end is not None

    @property
    def waiting(self) -> bool:
        """It asked, and there was nothing to read yet."""
        return self._waiting is not None

    def run(self) -> None:
        self.open()
        if self._reader is None:
            return
        self._budget.claim(self.probe.name, self.probe.max_share)
        schedule = Schedule(self._period_s, self.probe.max_share, self._clock.now())
        while not self._stop.wait(max(0.0, schedule.due_s - self._clock.now())):
            spent_s = self.cost_s
            self.tick(schedule.due_s)
            if self._end:
                break
            if self._waiting:
                schedule.retry(self._clock.now())
            else:
                schedule.advance(self._clock.now(), self.cost_s - spent_s, self._budget.scale)
        self._budget.release(self.probe.name)
        if not self._end:
            self.tick(self._clock.now(), final=True)
        self._reader.close()

    def open(self) -> None:
        """Imports and searches happen here, once; that time is no part of the sampling cost."""
        try:
            self._reader = self.probe.open(self._subject, self._stop)
        except Unavailable as error:
            self._end = error
        except Exception as error:  # a probe may break in any way, the run goes on
            self._end = Unavailable("unsupported", f"cannot start: {_text(error)}")

    def tick(self, due_s: float, final: bool = False) -> None:
        """One reading. The last one, after the server may be gone, is allowed to fail in silence."""
        assert self._reader is not None
        started_s, cpu_s = self._clock.now(), self._cpu_now()
        waited, self._waiting = self._waiting, None
        try:
            readings = self._reader.read()
        except NotYet as error:
            self._waiting = waited if final and waited else error
        except Unavailable as error:
            self._end = None if final else error
        except Exception as error:  # a probe may break in any way, the run goes on
            if not final:
                self._fail(error, started_s, max(0.0, started_s - due_s))
        else:
            self._in_a_row, self._has_read = 0, True
            self._publish(readings, started_s, max(0.0, started_s - due_s))
        self.cost_s += self._cpu_now() - cpu_s

    def _publish(self, readings: Sequence[Reading], started_s: float, late_s: float) -> None:
        at_s = self._clock.now()
        took_s = at_s - started_s
        self.late_max_s = max(self.late_max_s, late_s)
        for reading in readings:
            self._emit(
                Sample(
                    at_s=at_s,
                    probe=reading.probe or self.probe.name,
                    values=dict(reading.values),
                    labels=dict(reading.labels),
                    took_s=took_s,
                    late_s=late_s,
                    why=reading.why,
                )
            )
            took_s = 0.0  # one reading, one cost
            self.cost_s += reading.cost_s
            self.samples += 1
            if reading.stacks:
                self._emit_stacks(reading.stacks)

    def _fail(self, error: Exception, at_s: float, late_s: float) -> None:
        self.errors += 1
        self._in_a_row += 1
        why = _text(error)
        self._emit(Sample(at_s=at_s, probe=self.probe.name, late_s=late_s, status="stale", why=why))
        if self._in_a_row >= MAX_ERRORS:
            denied = isinstance(error, PermissionError)
            self._end = Unavailable(
                "denied" if denied else "stale", f"gave up after {MAX_ERRORS} failed reads in a row: {why}"
            )

    def state(self) -> ProbeState:
        """Ok with a `why` means that some of its metrics are missing."""
        verdict = self._end or (None if self._has_read else self._waiting)
        if verdict is None and not self._has_read:
            verdict = Unavailable("absent", "the run ended before its first reading")
        gaps = tuple(self._reader.gaps) if self._reader and not verdict else ()
        why = verdict.why if verdict else _of_gaps(gaps)
        enable = verdict.enable if verdict else "; ".join(dict.fromkeys(g.enable for g in gaps if g.enable))
        return ProbeState(
            probe=self.probe.name,
            status=verdict.status if verdict else "ok",
            why=why or None,
            enable=enable or None,
            gaps={name: g.why for g in gaps for name in g.metric.split(", ")},
            cost_s=self.cost_s,
            late_max_s=self.late_max_s,
            samples=self.samples,
            errors=self.errors,
        )


def _of_gaps(gaps: Sequence[Gap]) -> str:
    """`no kv_usage, steps: the server does not export them`, each reason once."""
    names: dict[str, list[str]] = {}
    for gap in gaps:
        names.setdefault(gap.why, []).append(gap.metric)
    return "; ".join(f"no {', '.join(metrics)}: {why}" for why, metrics in names.items())


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class Sampler:
    """All probes beside a run. `rates` overrides samples a second by probe; 0 switches one off."""

    def __init__(
        self,
        subject: Subject,
        clock: Clock,
        emit: Callable[[Sample], None],
        emit_stacks: Callable[[str], None],
        rates: Mapping[str, float],
    ) -> None:
        self._probes = discover()
        self._stop = threading.Event()
        self._off: list[ProbeState] = []
        self._workers: list[Worker] = []
        budget = Budget()
        for probe in self._probes:
            rate_hz = rates.get(probe.name, probe.rate_hz)
            if rate_hz <= 0:
                self._off.append(ProbeState(probe=probe.name, status="absent", why="switched off"))
            elif probe.host and subject.remote:
                self._off.append(
                    ProbeState(probe=probe.name, status="unsupported", why=REMOTE_WHY, enable=REMOTE_ENABLE)
                )
            else:
                self._workers.append(
                    Worker(probe, subject, clock, emit, emit_stacks, rate_hz, self._stop, budget)
                )
        self._threads = [
            threading.Thread(target=w.run, name=f"probe-{w.probe.name}", daemon=True) for w in self._workers
        ]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(m for probe in self._probes for m in probe.metrics)

    def settled(self, patient: bool) -> bool:
        """All have read something or never will; the impatient also take `nothing yet` for an answer."""
        return all(w.settled or (w.waiting and not patient) for w in self._workers)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> tuple[ProbeState, ...]:
        """A last reading of each probe, then what became of them, sorted by name."""
        self._stop.set()
        deadline_s = time.monotonic() + JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        states = [*self._off, *(w.state() for w in self._workers)]
        return tuple(sorted(states, key=lambda s: s.probe))


def discover() -> tuple[Probe, ...]:
    """All probe files, by name."""
    return tuple(probe for _, probe, _ in registry.discover("perfdoctor.probes", "PROBE"))
