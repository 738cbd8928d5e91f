"""Run folders whose numbers are known, written as a run writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfdoctor import store
from perfdoctor.model import Load, Prompts, RequestRecord, RunFacts, Scenario
from tests import factories


def records(
    n: int = 200, ttft_s: float = 0.1, decode_s: float = 1.0, jitter: float = 0.02, **changes: Any
) -> list[RequestRecord]:
    """One user's requests, one after the other; every third takes a little longer, so that nothing is
    exactly alike."""
    found, at = [], 20.0
    for i in range(n):
        slower = 1 + jitter * (i % 3)
        found.append(factories.request(i, at, ttft_s * slower, decode_s * slower, **changes))
        at = found[-1].end_s or at
    return found


def run_facts(concurrency: int = 1, **changes: Any) -> RunFacts:
    load = Load(concurrency=concurrency, prompts=changes.pop("prompts", Prompts()))
    fields: dict[str, Any] = {
        "command": "load-test",
        "steady": (20.0, 10_000.0),
        "baseline": None,
        "scenario": Scenario(load=load),
    }
    return factories.facts(concurrency=concurrency, **(fields | changes))


def write(folder: Path, of: Sequence[RequestRecord] | None = None, **changes: Any) -> Path:
    """A sealed run at `folder`."""
    found = run_facts(**changes)
    writer = store.create_run(found, folder)
    for record in records() if of is None else of:
        writer.append_request(record)
    writer.seal(state=found.state)
    return folder
