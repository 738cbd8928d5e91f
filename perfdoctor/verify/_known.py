"""What a side says and is: its greedy answers and its diagnosis, by which both are known before any run."""

from __future__ import annotations

import dataclasses
import os.path
from pathlib import Path

import msgspec

from perfdoctor import preflight, store
from perfdoctor.model import Outputs, Scenario, SideName, Target
from perfdoctor.verify import _ask, _loading
from perfdoctor.verify._side import Side
from perfdoctor.verify._trying import (
    SIDES,
    Known,
    Trying,
    conduct_run,
    of_side,
    orders_of,
    scenario_of,
    side_up,
)

LEDGER_S = 4.0  # of load for the diagnosis of a side: its shares, not its speed, are wanted


def know(trying: Trying, name: SideName) -> None:
    """Its greedy answers and its diagnosis, unless they are known from a fix before."""
    known = trying.known.setdefault(name, Known())
    if known.asked is None:
        side, _ = side_up(trying, name)
        trying.watch.begin(f"Asking the {name} side {len(_ask.QUESTIONS)} questions, greedily", "")
        scenario = scenario_of(trying, side, trying.plan.load)
        with of_side(side):
            address = _address(scenario, side, trying.plan.secret)
            known.asked = _ask.ask_all(address, trying.plan.secret, trying.plan.load)
    if known.ledger is None:
        known.ledger = _diagnose(trying, name)
    if known.side is None:
        known.side = msgspec.structs.replace(
            getattr(trying.found, name),
            first_answer_s=known.asked.first_s,
            next_answer_s=known.asked.next_s,
        )
    ledger = _below(trying.folder, known.ledger)
    trying.update(**{name: msgspec.structs.replace(known.side, ledger=ledger)})
    if not trying.found.versions:
        target = store.open_run(known.ledger).facts.target
        trying.update(
            versions=target.engine_version or target.engine, model=trying.found.model or target.model or ""
        )


def _below(folder: Path, path: Path) -> str:
    """A path that goes on to hold when all is moved together."""
    return os.path.relpath(path, folder)


def _address(scenario: Scenario, side: Side, secret: str | None) -> Target:
    """Where the side answers, and to which name."""
    server = side.patient.server if side.patient else None
    if server is None:
        facts = preflight.discover(scenario.target, secret)
        return msgspec.structs.replace(scenario.target, endpoint=facts.url, served_name=facts.model)
    return msgspec.structs.replace(scenario.target, endpoint=server.url, served_name=server.facts.model)


def _diagnose(trying: Trying, name: SideName) -> Path:
    load = trying.plan.load
    alone = 2 if load.concurrency > 1 else 0  # requests one at a time, which one user's are anyway
    load = msgspec.structs.replace(load, duration_s=LEDGER_S, requests=None, baseline_requests=alone)
    side, _ = side_up(trying, name)
    trying.watch.begin(f"Diagnosing the {name} side", "about 15 s")
    out = trying.folder / "ledgers" / name
    if trying.plan.of_loading:  # to be seen by a run that starts it; nobody else may hold the files
        trying.bench.stop()
        _loading.evict(_loading.files_of(trying.plan.scenario.target.model or ""))
        orders = dataclasses.replace(orders_of(trying, side, load, out, "diagnose"), patient=None)
        conduct_run(trying, side, orders)
        return out
    conduct_run(trying, side, orders_of(trying, side, load, out, "diagnose"))
    return out


def outputs(trying: Trying) -> Outputs:
    before, after = (trying.known[name].asked for name in SIDES)
    assert before and after
    return _ask.compare(before, after)
