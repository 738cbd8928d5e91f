"""A run seen by phase: its complete requests, its gauges and what its counters gained.

The lowest floor of judging. Holds no limits and knows no class of bottleneck.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from perfdoctor import latency, stats
from perfdoctor.model import PhaseName, RequestRecord, RunFacts, Sample

T = TypeVar("T")
CHILD_TELEMETRY = ("load", "serve", "step", "torch")


class NoValue(Exception):
    """A quantity that this run does not hold; the text says why. Never stands for zero."""

    @property
    def reason(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Change:
    """What a counter gained, and over how long it was watched."""

    amount: float
    span_s: float

    @property
    def rate(self) -> float:
        """Per second."""
        return self.amount / self.span_s


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one source in the order of time."""

    at_s: tuple[float, ...]
    values: tuple[float, ...]

    def value_at(self, at_s: float) -> float:
        """Between two readings on the straight line, outside of them the nearest one."""
        i = bisect.bisect_left(self.at_s, at_s)
        if i == 0:
            return self.values[0]
        if i == len(self.at_s):
            return self.values[-1]
        t0, t1 = self.at_s[i - 1], self.at_s[i]
        v0, v1 = self.values[i - 1], self.values[i]
        return v0 + (v1 - v0) * (at_s - t0) / (t1 - t0) if t1 > t0 else v1

    def gain(self, start_s: float, end_s: float) -> Change | None:
        """Between two instants, as far as readings reach; None when watched for no time or set back."""
        start_s, end_s = max(start_s, self.at_s[0]), min(end_s, self.at_s[-1])
        if end_s <= start_s:
            return None
        amount = self.value_at(end_s) - self.value_at(start_s)
        return Change(amount, end_s - start_s) if amount >= 0 else None


class Observations:
    """Facts, requests and samples of one run, indexed once. Requests are freed of the prompt's tail."""

    def __init__(
        self, facts: RunFacts, state: str, requests: Sequence[RequestRecord], samples: Iterable[Sample]
    ) -> None:
        self.facts, self.state = facts, state
        self.requests = latency.without_prompt_tail(tuple(requests))
        self._found: dict[str, object] = {}
        self._by_probe: dict[str, list[Sample]] = {}
        self._refusals: dict[str, str] = {}
        for sample in sorted(samples, key=lambda s: s.at_s):
            if sample.status == "ok":
                self._by_probe.setdefault(sample.probe, []).append(sample)
            elif sample.why:
                self._refusals[sample.probe] = sample.why

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` gives, or its NoValue, once for a run: many ask the same of thousands of requests."""
        if name not in self._found:
            try:
                self._found[name] = make()
            except NoValue as missing:
                self._found[name] = missing
        found = self._found[name]
        if isinstance(found, NoValue):
            raise NoValue(found.reason)
        return cast(T, found)

    def samples(self, probe: str) -> list[Sample]:
        if probe not in self._by_probe:
            raise NoValue(self.why_missing(probe))
        return self._by_probe[probe]

    def why_missing(self, probe: str) -> str:
        base, _, family = probe.partition(".")
        for state in self.facts.probes:
            if state.probe == base and family in state.gaps:
                return state.gaps[family]
            if state.probe in (probe, base) and (state.status != "ok" or state.why):
                return f"probe {state.probe} is {state.status}" + (f": {state.why}" if state.why else "")
        if probe in self._refusals:
            return f"probe {probe}: {self._refusals[probe]}"
        if base in CHILD_TELEMETRY and self.facts.target.kind != "local":
            return f"only a local model reports `{base}`"
        return f"no sample of `{probe}` in this run"

    def why_no(self, probe: str, metric: str) -> str | None:
        """What the probe itself said of a metric that it cannot read here."""
        states = (state for state in self.facts.probes if state.probe == probe)
        return next((state.gaps[metric] for state in states if metric in state.gaps), None)

    def ok(self, phase: PhaseName) -> tuple[RequestRecord, ...]:
        """Complete, successful requests of a phase."""
        return latency.ok_records(r for r in self.requests if r.phase == phase)

    def phase(self, name: PhaseName) -> Window:
        """A phase's window. A killed run did not write its last phase down: its requests still tell it."""
        names = (name, "watch") if name == "steady" else (name,)  # where no load was driven, what was watched
        for phase in self.facts.phases:
            if phase.name in names and phase.end_s > phase.start_s:
                return Window(self, name, phase.start_s, phase.end_s)
        stamps = [
            t for r in self.requests if r.phase == name for t in (r.sent_s, r.last_token_s) if t is not None
        ]
        if not stamps or max(stamps) <= min(stamps):
            raise NoValue(f"the run has no {name} phase")
        return Window(self, name, min(stamps), max(stamps))

    def concurrency(self, phase: PhaseName) -> int:
        """Users of the closed loop in a phase; of an open loop the requests open on average, rounded."""
        for found in self.facts.phases:
            if found.name == phase and found.concurrency:
                return found.concurrency
        if phase == "baseline":
            return 1
        load = self.facts.scenario.load
        return load.concurrency if load.arrival == "closed" else self._open_mean(self.phase(phase))

    def _open_mean(self, window: Window) -> int:
        spans = [(r.sent_s, r.end_s) for r in self.requests if r.sent_s is not None and r.end_s is not None]
        open_s = sum(max(0.0, min(b, window.end_s) - max(a, window.start_s)) for a, b in spans)
        return max(1, round(open_s / window.seconds))


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the run."""

    observations: Observations
    name: str
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s

    def gauge(self, probe: str, metric: str, **labels: str) -> list[float]:
        """Readings inside the window, never empty."""
        found = [v for t, v in self._readings(probe, metric, labels) if self.start_s <= t <= self.end_s]
        if not found:
            raise NoValue(f"no reading of {probe}.{metric} in the {self.name} phase")
        return found

    def change(self, probe: str, metric: str, **labels: str) -> Change:
        """What a counter gained inside the window, interpolated at its edges."""
        readings = self._readings(probe, metric, labels)
        gain = _series(readings).gain(self.start_s, self.end_s)
        if gain is None:
            raise NoValue(f"{probe}.{metric} was not read twice in the {self.name} phase, or was set back")
        return gain

    def series(self, probe: str, metric: str, *keys: str) -> dict[tuple[str, ...], Series]:
        """A metric by the values of the named labels, over the whole run; never empty."""
        groups: dict[tuple[str, ...], list[tuple[float, float]]] = {}
        for sample in self.observations.samples(probe):
            value = sample.values.get(metric)
            if value is not None and math.isfinite(value):
                key = tuple(sample.labels.get(k, "") for k in keys)
                groups.setdefault(key, []).append((sample.at_s, value))
        if not groups:
            raise NoValue(f"{probe} does not report {metric} here")
        return {key: _series(readings) for key, readings in groups.items()}

    def _readings(self, probe: str, metric: str, labels: dict[str, str]) -> list[tuple[float, float]]:
        wanted = labels.items()
        samples = [s for s in self.observations.samples(probe) if wanted <= s.labels.items()]
        found = [(s.at_s, v) for s in samples if (v := s.values.get(metric)) is not None and math.isfinite(v)]
        if not found:
            why = self.observations.why_no(probe, metric) or next((s.why for s in samples if s.why), None)
            raise NoValue(f"{probe} does not report {metric} here" + (f": {why}" if why else ""))
        return found


def _series(readings: Sequence[tuple[float, float]]) -> Series:
    return Series(tuple(t for t, _ in readings), tuple(v for _, v in readings))


def median(values: Sequence[float], least: int = 3) -> float:
    """Nearest-rank median; too few readings are no median."""
    found = stats.percentile(values, 0.5)
    if found is None or len(values) < least:
        raise NoValue(f"only {len(values)} readings, {least} are needed")
    return found


def ratio(part: float, whole: float, what: str) -> float:
    """`what` names the whole, which a broken reading may give as nothing."""
    if whole <= 0:
        raise NoValue(f"{what} was read as {whole:g}")
    return part / whole


def known(source: Callable[[], float | None]) -> float | None:
    """A quantity, or None where only its absence matters."""
    try:
        return source()
    except NoValue:
        return None
