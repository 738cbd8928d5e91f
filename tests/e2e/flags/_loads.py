"""What a load test told the server, and what came out of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from perfdoctor.model import RunFacts

UNTRUSTED = 4


class Run(NamedTuple):
    """`told`: what the server heard of each request, in their order, but for what was asked with GET."""

    told: list[dict[str, Any]]
    summary: dict[str, Any]
    facts: RunFacts
    code: int
    path: Path

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(told["body"]) for told in self.told]


Load = Callable[..., Run]


def words_of(told: dict[str, Any]) -> str:
    """The first message of a chat."""
    return str(json.loads(told["body"])["messages"][0]["content"])
