"""Processes and threads of one host as samples: what `pidstat` and `top` have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from perfdoctor.evidence._intervals import Clock, counters
from perfdoctor.model import Sample

# by how surely a name is that of an inference server; the first pattern that meets any task decides
SERVERS = (
    re.compile(
        r"vllm|sglang|ollama|llama|text-generation|triton|trtllm|lmdeploy|pt_main_thread|ktransformers|"
        r"koboldcpp|aphrodite|xinference|exllama|mlx|^transformers",
        re.IGNORECASE,
    ),
    re.compile(r"python|uvicorn|gunicorn|ray::", re.IGNORECASE),
)
IDLE = 0.01  # of a core; a process below it that is no server is left out
OF_TREE = {  # a process's rate or gauge -> the probes' metric of the server's whole tree
    "cores_used": ("cpu", "oncpu_s"),
    "runq_wait_share": ("cpu", "runq_wait_s"),
    "read_bytes_per_s": ("io", "process_read_bytes"),
    "blocked_share": ("io", "blkio_delay_s"),
    "major_faults_per_s": ("memory", "major_faults"),
}

Values = Mapping[str, float | None]
Key = tuple[str, str]  # pid, tid; the tid of a process is empty


@dataclass(slots=True)
class Interval:
    """Tasks by pid and tid: names, and what was read of each."""

    names: dict[Key, str] = field(default_factory=dict)
    values: dict[Key, dict[str, float | None]] = field(default_factory=dict)

    def add(self, key: Key, name: str, values: Values) -> None:
        self.names[key] = name
        self.values.setdefault(key, {}).update(values)


def servers(names: Iterable[tuple[Key, str]]) -> frozenset[str]:
    """Pids of what is an inference server by its name, or the only one listed: that one was asked for.

    Empty where nothing looks like one.
    """
    listed = list(names)
    pids = frozenset(key[0] for key, _ in listed)
    if len(pids) == 1:
        return pids
    for pattern in SERVERS:
        found = frozenset(key[0] for key, name in listed if pattern.search(name))
        if found:
            return found
    return frozenset()


def samples(clock: Clock, intervals: Sequence[Interval]) -> list[Sample]:
    """`cpu.process` of the busy ones, `cpu.thread` of the server's threads, and its tree as one."""
    chosen = servers((key, name) for i in intervals for key, name in i.names.items())
    found = []
    for at_s, interval in zip(clock.ends_s, intervals, strict=True):
        for key, values in interval.values.items():
            busy = (values.get("cores_used") or 0.0) >= IDLE or key[0] in chosen
            if not key[1] and busy and values:
                labels = {"pid": key[0], "name": interval.names[key]}
                found.append(Sample(at_s=at_s, probe="cpu.process", labels=labels, values=values))
    return [*found, *_threads(clock, intervals, chosen), *_tree(clock, intervals, chosen)]


def _threads(clock: Clock, intervals: Sequence[Interval], chosen: frozenset[str]) -> list[Sample]:
    keys = {key: name for i in intervals for key, name in i.names.items() if key[1]}
    found = []
    for key, name in keys.items():
        if chosen and key[0] and key[0] not in chosen:
            continue
        rows = [
            {
                "oncpu_s": _total(interval, [key], "cores_used"),
                "runq_wait_s": _total(interval, [key], "runq_wait_share"),
            }
            for interval in intervals
        ]
        found += counters("cpu.thread", {"pid": key[0], "tid": key[1], "name": name}, clock, rows)
    return found


def _tree(clock: Clock, intervals: Sequence[Interval], chosen: frozenset[str]) -> list[Sample]:
    """The server's processes added up; a quantity that no row has stays missing."""
    keys = [(pid, "") for pid in sorted(chosen)]
    found: list[Sample] = []
    if not keys:
        return found
    for probe in ("cpu", "io", "memory"):
        names = {ours: theirs for theirs, (to, ours) in OF_TREE.items() if to == probe}
        rows = [{ours: _total(i, keys, theirs) for ours, theirs in names.items()} for i in intervals]
        if any(v is not None for row in rows for v in row.values()):
            found += counters(probe, {}, clock, rows)
    return [*found, *_resident(clock, intervals, keys)]


def _resident(clock: Clock, intervals: Sequence[Interval], keys: Sequence[Key]) -> list[Sample]:
    """A task that is not listed for a while keeps its memory."""
    latest: dict[Key, float] = {}
    found = []
    for at_s, interval in zip(clock.ends_s, intervals, strict=True):
        cells = {key: interval.values.get(key, {}).get("rss_bytes") for key in keys}
        now = {key: value for key, value in cells.items() if value is not None}
        latest |= now
        if now:
            found.append(Sample(at_s=at_s, probe="memory", values={"rss_bytes": sum(latest.values())}))
    return found


def _total(interval: Interval, keys: Iterable[Key], name: str) -> float | None:
    """Of the named tasks. One that is not listed where others are was idle: these tools leave it out."""
    if not any(name in values for values in interval.values.values()):
        return None
    cells = [interval.values.get(key, {}).get(name, 0.0) for key in keys]
    return None if None in cells else sum(c for c in cells if c is not None)


def lengths(clock: Clock) -> tuple[float, ...]:
    """Seconds of each interval."""
    return tuple(b - a for a, b in pairwise(clock.instants_s))
