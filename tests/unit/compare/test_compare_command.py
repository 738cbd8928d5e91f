"""`perfdoctor compare` as a person types it: what it prints, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import compare_cases as cases
import jsonschema
import pytest

from perfdoctor.reports import _schemas
from tests import factories
from tests.inside import failed, perfdoctor

CaptureFixture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """`before` and `slower`, which takes a fifth longer to its first token."""
    monkeypatch.setenv("PERFDOCTOR_RUNS", str(tmp_path))
    cases.write(tmp_path / "before")
    cases.write(tmp_path / "slower", cases.records(ttft_s=0.12))
    return tmp_path


def test_the_table_fits_a_terminal(capsys: CaptureFixture):
    """80 columns, the verdict last."""
    ended = perfdoctor(capsys, "compare", "before", "slower")

    assert 0 == ended.code
    lines = ended.out.splitlines()
    assert 80 >= max(map(len, lines))
    (ttft,) = (line for line in lines if line.startswith("ttft_p50"))
    assert ["ttft_p50", "102", "ms", "122", "ms", "1.20"] == ttft.split()[:6]
    assert "worse" == ttft.split()[-1]
    assert "Verdict   worse: ttft_p50 1.20x, ttft_p95 1.20x" in ended.out


@pytest.mark.parametrize(
    ("fail_on", "code", "phrase"),
    [
        ("ttft_p95>+10%", 1, "Exit 1: --fail-on ttft_p95>+10%: it changed by +20 %"),
        ("ttft_p95>+30%", 0, ""),
        ("tpot_p95>+10%,error_rate>+1%", 0, ""),
        ("ttft_p99>+10%", 4, "Exit 4: --fail-on ttft_p99>+10%: it changed by +20 %, without an interval"),
        ("good_share>+10%", 4, "Exit 4: --fail-on good_share>+10%: no change is known"),
        ("good_share<-1%,ttft_p95>+10%", 1, "Exit 1: --fail-on ttft_p95>+10%"),
    ],
)
def test_exit_codes_of_limits(capsys: CaptureFixture, fail_on: str, code: int, phrase: str):
    """1 for what is certain, 4 for what nobody can know, each with its reason."""
    ended = perfdoctor(capsys, "compare", "before", "slower", "--fail-on", fail_on)

    assert code == ended.code
    assert phrase in ended.err


def test_json_keeps_to_its_schema(capsys: CaptureFixture):
    """And is all there is on stdout."""
    words = ("compare", "before", "slower", "--json", "--fail-on", "ttft_p95>+10%")
    found = json.loads(perfdoctor(capsys, *words).out)

    jsonschema.validate(found, json.loads(_schemas.generate()["comparison.schema.json"]))
    assert ("before", "slower") == (found["before"], found["after"])
    assert [True] == [limit["crossed"] for limit in found["parts"][0]["limits"]]


def test_markdown_is_a_table(capsys: CaptureFixture):
    """For a pull request."""
    ended = perfdoctor(capsys, "compare", "before", "slower", "--markdown")

    assert "| ttft\\_p50 | 102 ms | 122 ms | 1.20 |" in ended.out
    assert ended.out.startswith("# before against slower")


def test_mistakes_are_named(capsys: CaptureFixture, runs: Path):
    """Exit 2, before anything is read; a folder that is none; a run nobody may trust is exit 4."""
    failed(2, perfdoctor(capsys, "compare", "nowhere", "nowhere", "--fail-on", "ttft"), "no number")
    failed(2, perfdoctor(capsys, "compare", "before", "nowhere"), "there is no run folder nowhere")
    failed(2, perfdoctor(capsys, "compare", "before", "slower", "--json", "--markdown"), "give one of")
    (runs / "empty").mkdir()
    failed(2, perfdoctor(capsys, "compare", "before", "empty"), "holds no run")
    cases.write(runs / "busy", client=factories.QUIET_CLIENT.__class__(cpu_share=0.95))
    failed(4, perfdoctor(capsys, "compare", "before", "busy"), "the load generator used 95 % of a core")


def test_warnings_are_shown(capsys: CaptureFixture, runs: Path):
    """Another load is no proof of anything."""
    cases.write(runs / "other", concurrency=4)

    assert "Warning   load: concurrency was 1, is 4" in perfdoctor(capsys, "compare", "before", "other").out
