"""The fix catalogue: what a file of `fixes/*.md` holds, and the reader of all of them.

A file is TOML between two `+++` lines, then its page in Markdown; its name is the fix's id. A refuted fix is
in the catalogue for `explain` and is never offered.
"""

from __future__ import annotations

import functools
import importlib.resources
from typing import Literal

import msgspec

from perfdoctor.model import Measured

FOLDER = importlib.resources.files("perfdoctor.diagnosis") / "fixes"


class Variant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What replaces a fix's commands and check where one engine does it its own way."""

    commands: tuple[str, ...] = ()
    verify: str = ""


class Fix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of the catalogue; CONTRIBUTING.md tells what each key means.

    Empty `rules`, `engines`, `devices` or `dtypes` mean any. `leaves`: lowest and highest share of the
    `removes` rows that remains. `promised`: speed-up factor by row of the documents. `switch` and `before`:
    settings of the local server with the fix and without it, names and values as of `--set`.
    `changes_output`: "maybe" is within rounding, or by how it is set.
    """

    id: str
    title: str
    classes: tuple[str, ...]
    rules: tuple[str, ...] = ()
    verdict: Literal["confirmed", "conditional", "refuted"]
    documents: tuple[str, ...]
    source: str
    effort: Literal["configure", "rewrite", "buy"] = "configure"
    engines: tuple[str, ...] = ()
    devices: tuple[Literal["cpu", "cuda"], ...] = ()
    dtypes: tuple[str, ...] = ()
    claim: str = ""
    promised: dict[str, float] = {}
    removes: tuple[str, ...] = ()
    leaves: tuple[float, float] = (1.0, 1.0)
    precondition: str = ""
    contraindication: str = ""
    risk: str = ""
    changes_output: bool | Literal["maybe"]
    needs_restart: bool
    first_call: str = ""
    rollback: str = ""
    switch: dict[str, str] = {}
    before: dict[str, str] = {}
    measured: tuple[Measured, ...] = ()
    commands: tuple[str, ...] = ()
    verify: str = ""
    instead: tuple[str, ...] = ()
    per_engine: dict[str, Variant] = {}
    body: str

    def __post_init__(self) -> None:
        low, high = self.leaves
        if not 0 < low <= high <= 1:
            raise ValueError(f"leaves = {self.leaves} is no range in (0, 1]: nothing vanishes without a rest")

    def treats(self, cls: str, rule: str | None = None) -> bool:
        """Whether it is about the class, and about this rule of it; None: about any of its rules."""
        return cls in self.classes and (not self.rules or rule is None or rule in self.rules)


def parse_fix(name: str, text: str) -> Fix:
    """One catalogue file. ValueError (msgspec's is one) says what is wrong with it."""
    _, head, body = text.split("+++\n", 2)
    front = msgspec.toml.decode(head)
    return msgspec.convert({**front, "id": name, "body": body.strip()}, Fix)


@functools.cache
def load_fixes() -> tuple[Fix, ...]:
    """Every fix of the package, refuted ones too, by id."""
    files = sorted((f for f in FOLDER.iterdir() if f.name.endswith(".md")), key=lambda f: f.name)
    return tuple(parse_fix(f.name.removesuffix(".md"), f.read_text(encoding="utf-8")) for f in files)
