"""One line in, what it says out: numbers under our names and in our units."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from perfdoctor import registry

# statistics: what is going on now · preemption: requests thrown out of the KV cache · request: one that ended
# progress: of a load that goes on · begin, open, step, fact, ready: of a start, see _start.py
Kind = Literal["statistics", "preemption", "request", "progress", "begin", "open", "step", "fact", "ready"]
GIB, MIB, MS = float(2**30), float(2**20), 0.001
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_WORKER = re.compile(
    r"\((?P<vllm>(?:Worker|EngineCore)[^()]*)\bpid=|\[[-\d]{10} [\d:]{8} (?P<sglang>[A-Z]+\d[^\]]*)\]"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """`key` must stand in the line as it is: most lines hold none, and cost no more than looking for them.

    Each named group of `says` is a number under our name, or a part of one as `NAME__PART`; parts add up.
    `units` has its factor to our unit, and `flags` are words that stand for 1, any other for 0. `step` names
    the part of a start that a line opens or ends. A preemption without a number: lines from whose writer one
    would be known, and this is none.
    """

    kind: Kind
    key: str
    says: re.Pattern[str]
    step: str = ""
    units: Mapping[str, float] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lines:
    """All that is known of one engine's lines; of those that several write, `engine` is None."""

    engine: str | None
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """`engine` is None where several write the line. `worker` is the process of many that says it."""

    kind: Kind
    values: Mapping[str, float]
    step: str = ""
    engine: str | None = None
    worker: str = ""
    version: str | None = None


def says(text: str) -> re.Pattern[str]:
    """A pattern in which `<N>` stands for a number, with or without commas between thousands."""
    return re.compile(text.replace("<N>", _NUMBER))


def read_line(text: str) -> tuple[Said, ...]:
    """All that a line says, values of one kind and step together; nothing for most lines."""
    found: dict[tuple[Kind, str], Said] = {}
    for engine, pattern in _patterns():
        if pattern.key not in text or not (match := pattern.says.search(text)):
            continue
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        version = groups.pop("version", None)
        values: dict[str, float] = {}
        for group, value in groups.items():
            name = group.partition("__")[0]
            values[name] = values.get(name, 0.0) + _number(pattern, group, value)
        said = Said(pattern.kind, values, pattern.step, engine, "", version)
        before = found.get((said.kind, said.step))
        found[said.kind, said.step] = _both(before, said) if before else said
    worker = _worker(text) if found else ""
    return tuple(replace(said, worker=worker) for said in found.values())


def _both(first: Said, second: Said) -> Said:
    return replace(
        first,
        values={**second.values, **first.values},
        engine=first.engine if first.engine == second.engine else None,
        version=first.version or second.version,
    )


def read_statistics(text: str) -> dict[str, float]:
    """The numbers of a statistics line; empty for any other."""
    return {k: v for said in read_line(text) if said.kind == "statistics" for k, v in said.values.items()}


def _number(pattern: Pattern, name: str, text: str) -> float:
    if name in pattern.flags:
        return float(text == pattern.flags[name])
    return float(text.replace(",", "")) * pattern.units.get(name, 1.0)


def _worker(text: str) -> str:
    match = _WORKER.search(text)
    return (match["vllm"] or match["sglang"] or "").strip() if match else ""


@functools.cache
def _patterns() -> tuple[tuple[str | None, Pattern], ...]:
    known: list[Lines] = [lines for _, lines, _ in registry.discover("perfdoctor.logs", "SAYS")]
    return tuple((lines.engine, pattern) for lines in known for pattern in lines.patterns)
