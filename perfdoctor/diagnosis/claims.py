"""The rows of the five source documents, D0-01 to D4-17, and what they say against one another, C1 to C10."""

from __future__ import annotations

import functools

import msgspec

from perfdoctor.diagnosis.catalogue import FOLDER


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer that is not one fix. `see` names pages of `explain`; none: `answer` says why."""

    says: str
    answer: str
    see: tuple[str, ...] = ()


@functools.cache
def load_claims() -> dict[str, Claim]:
    """Row to its answer. Rows that fixes name in `documents` need none."""
    text = (FOLDER / "_coverage.toml").read_bytes()
    return msgspec.toml.decode(text, type=dict[str, Claim])
