"""What a switch is, and what it may change of a generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Plan:
    """How generate() is called. Switches write to it, one after another, before the first request."""

    config: dict[str, Any] = field(default_factory=dict)  # fields of its GenerationConfig
    cache: Callable[[int], Any] | None = None  # an empty KV cache for so many tokens; None: generate()'s own
    rehearse: bool = False  # the first generation is so much slower that it belongs to loading


@dataclass(frozen=True, slots=True)
class Switch:
    """`needs` and `excludes` name other switches: {name: value it must have}, and those that must be off.

    `live`: it can be put on and off a loaded model, because it changes nothing but its plan, its `forward` or
    its kernel of attention (see variants.py); else each value needs a process of its own.
    """

    values: tuple[str, ...]
    apply: Callable[[Any, Plan, str], None]  # (model, plan, the value asked for)
    cuda: bool = False  # works on a GPU only
    needs: Mapping[str, str] = field(default_factory=dict)
    excludes: tuple[str, ...] = ()
    live: bool = True
