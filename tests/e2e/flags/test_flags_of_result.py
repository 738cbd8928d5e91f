"""Flags of the result, each by what is printed and by the exit code."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from perfdoctor import store
from perfdoctor.model import ClientFacts, RunFacts
from tests.e2e.flags._loads import UNTRUSTED, Load
from tests.inside import failed, perfdoctor
from tests.servers import truth

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--slo", "ttft_p50<5s,error_rate<1%"), 0),
        (("--slo", "ttft_p50<1ms"), 1),
        (("--slo", "ttft_p99<5s"), 1),
        (("--fail-on", "error_rate>1%"), 0),
        (("--fail-on", "requests_per_s>0"), 1),
    ],
)
def test_limits_set_the_exit_code(load: Load, words: tuple[str, ...], code: int):
    """0 when they hold, 1 when not, also where there is no value (p99 of three requests); 4 if untrusted."""
    run = load(*words)

    assert (UNTRUSTED if run.summary["trust"]["status"] == "invalid" else code) == run.code


def test_another_tools_table(load: Load, capsys: pytest.CaptureFixture[str]):
    """In the JSON and in the report, by its name."""
    run = load("--metric-style", "vllm")
    shown = perfdoctor(capsys, "report", str(run.path), "--metric-style", "sglang")

    assert "vllm" == run.summary["style"]
    assert run.summary["styled"]
    assert "sglang" in shown.out


def test_definitions_are_told(load: Load, capsys: pytest.CaptureFixture[str]):
    """On demand; without, the table is short."""
    path = str(load().path)
    short, long = perfdoctor(capsys, "report", path), perfdoctor(capsys, "report", path, "--definitions")

    assert len(short.out.splitlines()) + 4 < len(long.out.splitlines())


def test_a_report_can_be_judged_by_other_limits(load: Load, capsys: pytest.CaptureFixture[str]):
    """Exit codes as those of the run: 0 or 1, and 4 where the client was the limit."""
    path = str(load().path)
    limited(path, cpu_share=0.1)

    assert 0 == perfdoctor(capsys, "report", path, "--slo", "ttft_p50<10s").code
    assert 1 == perfdoctor(capsys, "report", path, "--slo", "ttft_p50<1ms").code
    assert 1 == perfdoctor(capsys, "report", path, "--fail-on", "ttft_p50<10s").code
    limited(path, cpu_share=1.0)
    for limits in (("--slo", "ttft_p50<1ms"), ("--fail-on", "ttft_p50>10s")):
        judged = perfdoctor(capsys, "report", path, *limits)
        assert UNTRUSTED == judged.code
        assert "cannot be trusted" in judged.err
    assert 0 == perfdoctor(capsys, "report", path).code


def limited(path: str, cpu_share: float) -> None:
    """The run as it were had its client used so much of its core, and had nothing else gone wrong."""
    file = Path(path) / "run.json"
    facts = msgspec.json.decode(file.read_bytes(), type=RunFacts)
    client = ClientFacts(cpu_share=cpu_share)
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(facts, client=client)))


@pytest.mark.parametrize("form", ["--csv", "--jsonl"])
def test_rows_for_each_request(load: Load, capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str):
    """To stdout, or to a file that must not exist."""
    path = str(load("-n", "4").path)

    rows = perfdoctor(capsys, "report", path, form).out.splitlines()
    written = perfdoctor(capsys, "report", path, form, "-o", "rows")

    assert 4 + (form == "--csv") == len(rows)
    assert (0, rows) == (written.code, (tmp_path / "rows").read_text().splitlines())
    failed(2, perfdoctor(capsys, "report", path, form, "-o", "rows"), "add --force")


def test_a_scenario_file(load: Load, tmp_path: Path):
    """Its load is driven; a flag replaces a value of it."""
    (tmp_path / "nightly.toml").write_text("[load]\nrequests = 5\n[load.prompts]\noutput_tokens = 4\n")

    run = load("--scenario", "nightly.toml", "-n", "2")

    assert [4, 4] == [body["max_tokens"] for body in run.bodies]


def test_a_run_is_repeated_from_its_own_scenario(load: Load, server: truth.Truth):
    """Also one of any HTTP, with its query and its holes."""
    first = load("--api", "http", "--body", "x", endpoint=f"{server.url}/s/good/x?q=steady&n={{{{id}}}}")

    again = load("--scenario", str(first.path / "scenario.toml"), endpoint=f"{server.url}/s/good/y?q=steady")

    kept = store.open_run(str(first.path)).facts.scenario
    assert ("http", 3, f"{server.url}/s/good/x?q=steady&n={{{{id}}}}") == (
        kept.target.api, kept.load.requests, kept.target.endpoint
    )  # fmt: skip
    assert ["/s/good/y?q=steady"] * 3 == [told["path"] for told in again.told]


def test_quiet_and_the_folder(server: truth.Truth, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """-q leaves stderr empty, -o names the folder."""
    words = ("load-test", "--endpoint", server.url, "-n", "2", "-q", "-o", str(tmp_path / "mine"))

    ended = perfdoctor(capsys, *words)

    assert ended.code in (0, UNTRUSTED) and "" == ended.err
    assert 2 == len(
        [r for r in store.open_run(str(tmp_path / "mine")).read_requests() if r.phase == "steady"]
    )
