"""The whole catalogue in one table: what is tried, what is not, and going on where it ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfdoctor.diagnosis import catalogue
from perfdoctor.errors import CannotTry, ServerDied, UsageError
from perfdoctor.model import Scenario, Target, TriedSide, Verification
from perfdoctor.progress import Watch
from perfdoctor.verify import _all, _folder
from perfdoctor.verify._plan import Plan

FIXES = ("load-in-bfloat16", "use-fewer-threads", "compile-with-static-cache")  # the first has a before


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Fixes as they are tried; a stand-in for the trial itself, which needs minutes."""
    seen: list[Any] = []

    def try_fix(plan: Plan, watch: Watch, folder: Path, bench: Any, known: dict) -> Verification:
        seen.append((plan.name, bench, known["before"]))
        if failure := FAILURES.get(plan.name):
            raise failure
        found = Verification(verify=folder.name, fix=plan.name, state="complete", verdict="no_effect")
        _folder.write(folder, found)
        return found

    def read(folder: Path) -> Verification:
        return _folder._stored(folder, "verify.json", Verification)

    monkeypatch.setattr(_all, "try_fix", try_fix)
    monkeypatch.setattr(_folder, "read", read)
    FAILURES.clear()
    return seen


FAILURES: dict[str, BaseException] = {}


def make(fix: catalogue.Fix) -> Plan:
    if fix.id not in FIXES:
        raise CannotTry(f"{fix.id} cannot be tried here", "It needs what is not here.")
    scenario = Scenario(target=Target(model="tiny"))
    settings = TriedSide(settings=fix.before), TriedSide(settings=fix.switch)
    return Plan(fix.id, fix, scenario, 5, *settings)


def conduct(out: Path, model: str = "tiny", of: Callable[..., Plan] = make):
    return _all.conduct_all(of, model, (), out, Watch(quiet=True))[1]


def test_every_fix_is_a_line(tried: list, tmp_path: Path):
    """Those that cannot run here with their reason; nothing of the catalogue is left out."""
    found = conduct(tmp_path / "it")

    assert "complete" == found.state
    assert [fix.id for fix in catalogue.load_fixes()] == [trial.fix for trial in found.trials]
    lines = {trial.fix: trial for trial in found.trials}
    assert {"no_effect"} == {lines[name].verdict for name in FIXES}
    assert "cannot_run" == lines["raise-max-num-seqs"].verdict
    assert "It needs what is not here" in lines["raise-max-num-seqs"].reason
    assert lines["compile-with-static-cache"].promised


def test_the_side_without_a_fix_is_shared(tried: list, tmp_path: Path):
    """One process for all fixes that are switches, and for the side without of those that are not; what is
    known of it, too. A fix whose before is another process has its own, and so has its after."""
    conduct(tmp_path / "it")

    benches = {name: (bench.side("before"), bench.side("after"), known) for name, bench, known in tried}
    dtype, threads, compiled = (benches[name] for name in FIXES)
    assert compiled[0].child is compiled[1].child is threads[0].child
    assert len({id(side.child) for side in (dtype[0], dtype[1], threads[0], threads[1])}) == 4
    assert compiled[2] is threads[2] and compiled[2] is not dtype[2]


def test_it_goes_on_where_it_ended(tried: list, tmp_path: Path):
    """A Ctrl-C in the second fix: the first is not tried again, and the line of the second is made."""
    FAILURES["load-in-bfloat16"] = KeyboardInterrupt()
    found = conduct(tmp_path / "it")
    assert "interrupted" == found.state
    before = [name for name, *_ in tried]

    FAILURES.clear()
    tried.clear()
    found = conduct(tmp_path / "it")

    assert ["compile-with-static-cache", "load-in-bfloat16"] == before
    assert ["load-in-bfloat16", "use-fewer-threads"] == [name for name, *_ in tried]
    assert ("complete", len(catalogue.load_fixes())) == (found.state, len(found.trials))
    assert {"load-in-bfloat16", "load-in-bfloat16-2"} <= {path.name for path in (tmp_path / "it").iterdir()}


def test_a_side_that_dies_costs_its_line_only(tried: list, tmp_path: Path):
    """The others are tried."""
    FAILURES["load-in-bfloat16"] = ServerDied("the after side died", "Its log ends: x")
    found = conduct(tmp_path / "it")

    line = next(trial for trial in found.trials if trial.fix == "load-in-bfloat16")
    assert ("cannot_run", "the after side died (Its log ends: x)") == (line.verdict, line.reason)
    assert 3 == len(tried)


def test_another_models_table_is_not_gone_on_with(tried: list, tmp_path: Path):
    """Its numbers would stand beside those of this one."""
    conduct(tmp_path / "it")

    with pytest.raises(UsageError, match="holds the trials of tiny"):
        conduct(tmp_path / "it", model="tiny:small")
