"""A flag is data: its help, and the place in a scenario that its value goes to.

Commands list the groups they take; their values arrive as one mapping without those that were not given, so
that a scenario file keeps what the command line does not say.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Flag:
    """`to` is a dotted path below the scenario; None: the command looks at it itself.

    `read` turns the text into the field's value, and raises UsageError for what is none.
    """

    name: str  # of the parameter: `max_error_rate` is `--max-error-rate`
    to: str | None
    help: str
    metavar: str | None = None
    kind: Any = str
    read: Callable[[Any], Any] | None = None
    short: str | None = None
    long: str | None = None  # where it is not the name, or has a negative form
    least: int | None = None
    group: str = ""  # the heading it stands under in --help

    def spelled(self) -> str:
        return self.short or "--" + self.name.replace("_", "-")

    def parameter(self) -> inspect.Parameter:
        """As typer reads it; the value of one that is not given is None."""
        long = self.long or "--" + self.name.replace("_", "-")
        words = [self.short, long] if self.short else [long]
        metavar = self.metavar or {int: "N", float: "X"}.get(self.kind)
        option = typer.Option(
            *words, metavar=metavar, help=self.help, min=self.least, rich_help_panel=self.group or None
        )
        kind: Any = Annotated[self.kind | None, option]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def group(title: str, *flags: Flag) -> tuple[Flag, ...]:
    """Flags under one heading of --help."""
    return tuple(replace(flag, group=title) for flag in flags)


def takes(*groups: Sequence[Flag]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare that a command takes these flags; it gets them as `given`, before its own parameters."""
    flags = [flag for group in groups for flag in group]

    def declare(run: Callable[..., None]) -> Callable[..., None]:
        own = [p for p in inspect.signature(run, eval_str=True).parameters.values() if p.name != "given"]

        @functools.wraps(run)
        def command(**values: Any) -> None:
            asked = {flag.name: values.pop(flag.name) for flag in flags}
            run({name: value for name, value in asked.items() if value is not None}, **values)

        parameters = [flag.parameter() for flag in flags]
        parameters += [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return declare


def lay_over(record: Any, given: Given, groups: Sequence[Sequence[Flag]]) -> Any:
    """A scenario with the values that were given in their places; mappings are added to, others replaced."""
    for flag in (flag for group in groups for flag in group):
        if flag.to is not None and flag.name in given:
            value = given[flag.name]
            record = _put(record, flag.to.split("."), flag.read(value) if flag.read else value)
    return record


def value_at(record: Any, path: Sequence[str]) -> Any:
    for name in path:
        record = getattr(record, name)
    return record


def _put(record: Any, path: Sequence[str], value: Any) -> Any:
    import msgspec

    name, *rest = path
    old = getattr(record, name)
    if rest:
        value = _put(old, rest, value)
    elif isinstance(value, dict):
        value = {**old, **value}
    return msgspec.structs.replace(record, **{name: value})
