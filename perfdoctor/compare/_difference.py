"""What is not the same on both sides beside the numbers: machine, load, prompts, model, versions. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from perfdoctor import units
from perfdoctor.model import Difference, Load, RunFacts

_LOAD = (
    "arrival", "concurrency", "rate", "burstiness", "ramp", "max_in_flight", "replay", "replay_speed",
    "temperature",
)  # fmt: skip
_PROMPTS = ("source", "file", "input_tokens", "output_tokens", "shared_prefix_tokens", "turns", "tokenizer")
_MACHINE = ("hostname", "cpu", "cores", "quota_cores", "kernel")
_SETTING = ("engine", "dtype", "device", "threads")
MEMORY_ALIKE = 0.01  # of a share: the kernel keeps another part for itself after every boot


def differences(before: RunFacts, after: RunFacts) -> tuple[Difference, ...]:
    return tuple(_found(before, after))


def _found(before: RunFacts, after: RunFacts) -> Iterator[Difference]:
    yield from _of("machine", _MACHINE, before.host, after.host)
    was, now = before.host.memory_bytes or 0, after.host.memory_bytes or 0
    if abs(was - now) > MEMORY_ALIKE * max(was, now):
        yield Difference(
            what="machine", name="memory", before=units.size_bytes(was), after=units.size_bytes(now)
        )
    for name in ("name", "driver"):
        gpus = [", ".join(str(getattr(g, name)) for g in facts.host.gpus) for facts in (before, after)]
        yield from _pair("machine", f"GPU {name}", *gpus)
    yield from _of(
        "load", _used(before.scenario.load, after.scenario.load), before.scenario.load, after.scenario.load
    )
    yield from _of("prompts", _PROMPTS, before.scenario.load.prompts, after.scenario.load.prompts)
    yield from _of("load", ("api", "stream", "extra_body"), before.scenario.target, after.scenario.target)
    yield from _of("model", ("model", "parameters", "weights_random"), before.target, after.target)
    yield from _of("versions", ("perfdoctor",), before, after)
    if before.target.engine == after.target.engine:
        yield from _of("versions", ("engine_version",), before.target, after.target)
    yield from _of("versions", ("python",), before.host, after.host)
    yield from _of("setting", _SETTING, before.target, after.target)
    options = [facts.scenario.target.options for facts in (before, after)]
    for name in sorted(set(options[0]) | set(options[1])):
        if name not in _SETTING:
            yield from _pair("setting", name, options[0].get(name), options[1].get(name))


def _used(before: Load, after: Load) -> tuple[str, ...]:
    """An open loop has no users, whatever the orders say."""
    closed = "closed" in (before.arrival, after.arrival)
    return tuple(name for name in _LOAD if closed or name != "concurrency")


def _of(what: str, names: tuple[str, ...], before: object, after: object) -> Iterator[Difference]:
    for name in names:
        yield from _pair(what, name, getattr(before, name), getattr(after, name))


def _pair(what: str, name: str, before: object, after: object) -> Iterator[Difference]:
    if before != after:
        yield Difference(
            what=what,  # type: ignore[arg-type]
            name=name.replace("_", " "),
            before=_text(before),
            after=_text(after),
        )


def _text(value: object) -> str:
    return "not known" if value is None or value == "" else str(value)
