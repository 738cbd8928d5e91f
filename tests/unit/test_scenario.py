"""Scenario files and what counts as a right verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdoctor import scenario
from perfdoctor.errors import UsageError
from perfdoctor.model import Diagnosis, Trust, Verdict


def diagnosed(cls: str | None, status: str = "found", trust: str = "valid") -> Diagnosis:
    return Diagnosis(run="r", trust=Trust(status=trust), verdict=Verdict(status=status, cls=cls))


def test_every_shipped_scenario_reads_and_says_what_is_right():
    """Each file has a description, an expectation, and a workload that exists if it names one."""
    for name, path in scenario.available().items():
        found = scenario.read_scenario(path)

        assert name == found.name
        assert found.description.strip()
        assert {"class", "status", "trust"} == set(found.expect)
        module = found.fault.get("use")
        assert module is None or Path(*module.split(".")).with_suffix(".py").exists()


def test_a_verdict_is_right_when_every_expectation_holds():
    """A text must match, of a list any."""
    expect = {"class": "disk-io", "status": "found", "trust": ["valid", "degraded"]}

    assert [] == scenario.judge_outcome(expect, diagnosed("disk-io", trust="degraded"))
    assert ["class is gil, expected disk-io"] == scenario.judge_outcome(expect, diagnosed("gil"))
    assert 2 == len(scenario.judge_outcome(expect, diagnosed("disk-io", "healthy", "invalid")))


def test_nothing_found_is_not_the_class_expected():
    """No class at all differs from the class that was caused."""
    wrong = scenario.judge_outcome({"class": "disk-io"}, diagnosed(None, "insufficient_evidence"))

    assert ["class is None, expected disk-io"] == wrong


def test_a_broken_file_names_its_fault(tmp_path: Path):
    """A wrong type is a usage error with the key's name."""
    (tmp_path / "x.toml").write_text('name = "x"\n[load]\nconcurrency = "many"\n')

    with pytest.raises(UsageError, match="concurrency"):
        scenario.read_scenario(tmp_path / "x.toml")


def test_an_installation_without_the_source_tree_says_so(tmp_path: Path):
    """The wheel has no scenarios."""
    with pytest.raises(UsageError, match="not installed"):
        scenario.available(tmp_path / "none")
