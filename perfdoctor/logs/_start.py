"""The last start of a server in a stretch of its log: how long each part took, and what it settled.

A start begins with its banner and ends when the server answers. Parts that one process went through twice (a
model and its draft) add up; of processes that went through one side by side, the slowest counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perfdoctor.logs._line import Said, read_line
from perfdoctor.logs._stamp import Stamp, read_stamp


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a start, in the order of their ends. Some lie within others: weights within model; compile,
    profile, warmup and graph within engine; all of them within runner."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Start:
    """`seconds` from its banner to the first line that says it answers, by stamps; None without both."""

    engine: str | None
    version: str | None
    steps: tuple[Step, ...]
    facts: dict[str, float]
    workers: int
    seconds: float | None
    ready: bool

    def values(self) -> dict[str, float]:
        """All of it as one flat reading: `weights_s`, `graph_s` ..., the whole as `start_s`, and the facts.

        `on_host_share`: layers that do not run on the GPU, of all.
        """
        found = {f"{step.name}_s": step.seconds for step in self.steps}
        if self.seconds is not None:
            found["start_s"] = self.seconds
        if self.workers > 1:
            found["workers"] = float(self.workers)
        facts = dict(self.facts)
        on_gpu, layers = facts.pop("gpu_layers", None), facts.pop("layers", None)
        if on_gpu is not None and layers:
            found["on_host_share"] = 1 - on_gpu / layers
        return found | facts


class Tally:
    """Fed line by line. A banner after anything that belongs to a start begins the next one."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._engine: str | None = None
        self._version: str | None = None
        self._steps: dict[str, dict[str, float]] = {}
        self._open: dict[tuple[str, str], Stamp] = {}
        self._facts: dict[str, float] = {}
        self._began: Stamp | None = None
        self._ended: Stamp | None = None
        self._ready = False

    def feed(self, lines: Iterable[str]) -> None:
        for line in lines:
            said = read_line(line)
            if said:
                self.take(said, read_stamp(line))

    def take(self, said: Iterable[Said], stamp: Stamp | None) -> None:
        """What one line said, where it was read already."""
        for part in said:
            if part.kind == "begin":
                if self._steps or self._ready:
                    self._reset()
                self._began = self._began or stamp
            elif part.kind == "open" and stamp:
                self._open[part.step, part.worker] = stamp
            elif part.kind == "step":
                self._end_step(part, stamp)
            elif part.kind == "fact":
                self._facts |= part.values
            elif part.kind == "ready" and not self._ready:
                self._ready, self._ended = True, stamp
            else:
                continue
            self._engine, self._version = self._engine or part.engine, self._version or part.version

    def _end_step(self, said: Said, stamp: Stamp | None) -> None:
        facts = dict(said.values)
        seconds = facts.pop("seconds", None)
        self._facts |= facts
        begun = self._open.pop((said.step, said.worker), None)
        if seconds is None:
            seconds = _between(begun, stamp)
        if seconds is not None:
            by_worker = self._steps.setdefault(said.step, {})
            by_worker[said.worker] = by_worker.get(said.worker, 0.0) + seconds

    def start(self) -> Start | None:
        """What has been seen so far; None without any part of a start."""
        if not self._steps and not self._facts:
            return None
        steps = tuple(Step(name, max(by_worker.values())) for name, by_worker in self._steps.items())
        workers = max((len(by_worker) for by_worker in self._steps.values()), default=1)
        seconds = _between(self._began, self._ended)
        return Start(self._engine, self._version, steps, dict(self._facts), workers, seconds, self._ready)


def read_start(lines: Iterable[str]) -> dict[str, float]:
    """What the last start among these lines says of itself; empty where there is none."""
    tally = Tally()
    tally.feed(lines)
    start = tally.start()
    return start.values() if start else {}


def _between(first: Stamp | None, last: Stamp | None) -> float | None:
    """Never negative: a clock that was set back, or two clocks, say nothing."""
    if not first or not last or first.clock != last.clock or last.seconds < first.seconds:
        return None
    return last.seconds - first.seconds
