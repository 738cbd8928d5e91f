"""Labelled faults: a TOML file says what to run, how to cause the fault for real, and the right verdict.

The files and the small programs that cause the faults are in the project's `scenarios/` folder, not in the
wheel: they belong to the source tree.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from perfdoctor import console
from perfdoctor.errors import PerfdoctorError, UsageError
from perfdoctor.model import Diagnosis, Scenario
from perfdoctor.scenario_file import read_scenario

if TYPE_CHECKING:
    from perfdoctor.stages import Orders

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a scenario ended: right, wrong or skipped, and what was expected against what was found."""

    name: str
    status: str
    detail: str


def available(folder: Path = FOLDER) -> dict[str, Path]:
    """Scenario files by name. UsageError where there is no such folder."""
    if not folder.is_dir():
        raise UsageError(
            "the labelled scenarios are not installed",
            "They are part of the source tree, not of the wheel.",
            "clone the repository and run there: make scenarios",
        )
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def judge_outcome(expect: dict[str, Any], diagnosis: Diagnosis) -> list[str]:
    """What differs from the expectation; empty when the verdict is right."""
    found = {
        "class": diagnosis.verdict.cls,
        "status": diagnosis.verdict.status,
        "trust": diagnosis.trust.status,
    }
    wrong = []
    for key, wanted in expect.items():
        allowed = wanted if isinstance(wanted, list) else [wanted]
        if found[key] not in allowed:
            wrong.append(f"{key} is {found[key]}, expected {' or '.join(allowed)}")
    return wrong


def show_list() -> None:
    for name, path in available().items():
        first_line = read_scenario(path).description.strip().partition("\n")[0]
        console.out().print(f"{name:18} {first_line}", markup=False, soft_wrap=True)


def run_all(names: Sequence[str], quiet: bool) -> bool:
    """Run the named scenarios, `all` of them if so asked; True when none was judged wrong."""
    known = available()
    wanted = list(known) if "all" in names else list(names)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageError(f"there is no scenario {unknown[0]}", "", f"one of: {', '.join(known)}")
    outcomes = []
    for name in wanted:
        outcome = run_one(read_scenario(known[name]), quiet)
        style = {"right": "clear", "wrong": "hit"}.get(outcome.status, "unknown")
        console.out().print(f"{outcome.name:18} ", end="", markup=False)
        console.out().print(outcome.status, end="  ", style=style)
        console.out().print(outcome.detail, markup=False, soft_wrap=True)
        outcomes.append(outcome)
    return all(outcome.status != "wrong" for outcome in outcomes)


def run_one(scenario: Scenario, quiet: bool) -> Outcome:
    """Cause the fault, diagnose, compare with what the file expects."""
    from perfdoctor import commands

    try:
        with _injected(scenario) as (injected, prefix):
            bundle = commands.run_and_judge(_orders(injected, prefix), quiet)
    except _Skip as reason:
        return Outcome(scenario.name, "skipped", str(reason))
    except PerfdoctorError as error:
        return Outcome(scenario.name, "wrong", error.what)
    assert bundle.diagnosis is not None
    wrong = judge_outcome(scenario.expect, bundle.diagnosis)
    if wrong:
        return Outcome(scenario.name, "wrong", f"{'; '.join(wrong)} ({bundle.facts.run})")
    return Outcome(scenario.name, "right", bundle.diagnosis.verdict.summary)


class _Skip(Exception):
    """This machine cannot cause the fault."""


def _orders(scenario: Scenario, prefix: tuple[str, ...]) -> Orders:
    from perfdoctor.stages import Orders

    return Orders(
        scenario=scenario, command=f"scenario-{scenario.name}", argv=tuple(sys.argv[1:]), prefix=prefix
    )


@contextlib.contextmanager
def _injected(scenario: Scenario) -> Iterator[tuple[Scenario, tuple[str, ...]]]:
    """The scenario with its fault in force: its own server's endpoint, and the child's command prefix."""
    options = dict(scenario.fault)
    module = options.pop("use", None)
    if module is None:
        yield scenario, ()
        return
    root = str(FOLDER.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    workload = importlib.import_module(module)
    try:
        with workload.inject(options) as injection:
            target = scenario.target
            if injection.endpoint:
                target = msgspec.structs.replace(target, endpoint=injection.endpoint)
            if injection.model:
                target = msgspec.structs.replace(target, model=injection.model)
            yield msgspec.structs.replace(scenario, target=target), tuple(injection.prefix)
    except importlib.import_module("scenarios.workloads").Unavailable as reason:
        raise _Skip(str(reason)) from reason
