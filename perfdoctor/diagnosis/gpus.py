"""Datasheet limits of GPUs by name, from data/gpus.toml."""

from __future__ import annotations

import functools
import re
from importlib import resources

import msgspec

from perfdoctor.diagnosis.observations import NoValue


class Datasheet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`tensor_flops_per_s` is dense 16-bit without sparsity."""

    pattern: str
    bandwidth_bytes_per_s: float
    tensor_flops_per_s: float
    source: str


def datasheet(name: str) -> Datasheet:
    """The first entry whose pattern is found in the name NVML gives; NoValue for a GPU that is not listed."""
    for sheet in _sheets():
        if re.search(sheet.pattern, name):
            return sheet
    raise NoValue(f"the GPU '{name}' is not in perfdoctor/data/gpus.toml")


@functools.cache
def _sheets() -> tuple[Datasheet, ...]:
    raw = (resources.files("perfdoctor") / "data" / "gpus.toml").read_bytes()
    return tuple(msgspec.toml.decode(raw, type=dict[str, list[Datasheet]])["gpu"])
