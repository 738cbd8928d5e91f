"""Orders that no sweep can follow, said before anything is sent."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import sweep_cases as cases

from perfdoctor.model import Sweep
from perfdoctor.sweep import _folder
from tests.inside import failed, perfdoctor

ENDPOINT = ("--endpoint", "http://127.0.0.1:9")


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PERFDOCTOR_RUNS", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        (("-c", "1,x"), "-c 1,x is no list of levels"),
        (("-c", "0,2"), "-c 0,2 is no list of levels"),
        (("--rate", "1,,2"), " is no rate"),
        (("-c", "1,2", "--rate", "3"), "-c does not go with --rate"),
        (("-c", "1,2", "--max-concurrency", "8"), "--max-concurrency does not go with levels"),
        (("--rate", "1,2", "--max-rate", "8"), "--max-rate does not go with levels"),
        (("--max-rate", "8", "--max-concurrency", "8"), "--max-concurrency does not go with --max-rate"),
        (("--max-rate", "0"), "0 is no rate"),
        (("--arrival", "gamma"), "--arrival does not go with a load without a rate"),
        (("--slo", "ttft<1s"), "is no number of a load test"),
    ],
)
def test_what_no_sweep_can_be_made_of(capsys: pytest.CaptureFixture[str], words, phrase, runs: Path):
    """Exit 2, three lines, and no folder."""
    failed(2, perfdoctor(capsys, "sweep", *ENDPOINT, *words), phrase)

    assert [] == list(runs.iterdir())


@pytest.mark.parametrize(
    ("load", "phrase"),
    [
        (
            "ramp = [[0.0, 1.0], [9.0, 2.0]]\narrival = 'poisson'",
            "has levels, and this scenario no steady load",
        ),
        ("rate = 2.0\narrival = 'poisson'", "over a rate needs its levels"),
    ],
)
def test_a_scenario_without_levels(capsys: pytest.CaptureFixture[str], load, phrase, runs: Path):
    """A ramp has none, and one rate is none."""
    file = runs / "it.toml"
    file.write_text(f"[target]\nendpoint = 'http://127.0.0.1:9'\n[load]\n{load}\n")

    failed(2, perfdoctor(capsys, "sweep", "--scenario", str(file)), phrase)


def test_no_server_leaves_nothing_behind(capsys: pytest.CaptureFixture[str], runs: Path):
    """The error of a load test, and no folder of a sweep that never was; one that was given stays."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = ("--endpoint", f"http://127.0.0.1:{closed.getsockname()[1]}")
        failed(3, perfdoctor(capsys, "sweep", *endpoint), "nothing listens")
        assert [] == list(runs.iterdir())

        (runs / "mine").mkdir()
        failed(3, perfdoctor(capsys, "sweep", *endpoint, "-o", str(runs / "mine")), "nothing listens")
        assert [] == list((runs / "mine").iterdir())


@pytest.mark.parametrize("words", [("--html",), ("--csv",), ("--fail-on", "error_rate>1%"), ("-o", "x.txt")])
def test_a_form_of_one_run_is_refused_for_a_sweep(capsys: pytest.CaptureFixture[str], words, runs: Path):
    """With the way to its runs; a folder without any of its runs shows what was written."""
    (runs / "it").mkdir()
    _folder.write(runs / "it", Sweep(sweep="it", state="complete", levels=(cases.row(1), cases.row(2))))

    failed(2, perfdoctor(capsys, "report", "it", *words), "is a sweep")
    assert "\n    2 " in perfdoctor(capsys, "report", "latest").out


def test_a_damaged_sweep_is_named(capsys: pytest.CaptureFixture[str], runs: Path):
    """Not a traceback."""
    (runs / "it").mkdir()
    (runs / "it" / "sweep.json").write_text("{")

    failed(2, perfdoctor(capsys, "report", "it"), "sweep.json cannot be read")
