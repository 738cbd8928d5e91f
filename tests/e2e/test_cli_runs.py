"""The commands as a person runs them, in child processes, on the real tiny model."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfdoctor import store
from tests.servers import truth

pytestmark = [pytest.mark.server, pytest.mark.alone]
SHORT = ["--model", "tiny", "-c", "2", "--duration", "3s", "--output-tokens", "24"]


def perfdoctor(*arguments: str, cwd: Path, **env: str) -> subprocess.Popen[str]:
    """A perfdoctor process whose runs land in `cwd`, its streams captured."""
    return subprocess.Popen(
        [sys.executable, "-m", "perfdoctor", *arguments],
        cwd=cwd,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], timeout_s: float = 150) -> tuple[int, str, str]:
    """(exit code, stdout, stderr), with the promise that no traceback was shown."""
    out, err = process.communicate(timeout=timeout_s)
    assert "Traceback" not in out + err, err
    return process.returncode, out, err


def wait_for_steady(folder: Path, process: subprocess.Popen[str]) -> store.Run:
    """Until requests of the steady phase are on the disk."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        found = [p for p in folder.glob("perfdoctor-runs/*/requests.jsonl") if '"steady"' in p.read_text()]
        if found:
            return store.open_run(found[0].parent)
        time.sleep(0.1)
    raise AssertionError(f"no steady phase was reached: {finish(process)}")


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    """One whole `diagnose --model tiny`, shared by the tests that look at its results."""
    folder = tmp_path_factory.mktemp("tiny")
    code, out, err = finish(perfdoctor("diagnose", *SHORT, "-n", "40", cwd=folder))
    return folder, code, out, err


def test_diagnose_tiny_names_the_serial_server(tiny_run: tuple[Path, int, str, str]):
    """Two users on a one-at-a-time server wait for each other; the verdict ends with the next command."""
    folder, code, out, err = tiny_run
    (path,) = folder.glob("perfdoctor-runs/*/diagnosis.json")
    findings = json.loads(path.read_text())["findings"]
    commands = {c for finding in findings for fix in finding["fixes"] for c in fix["commands"]}

    assert 0 == code, err
    assert "serial-server" in out
    assert re.search(r"^Next\s+perfdoctor ", out, re.MULTILINE)
    assert re.search(r"^Fix 1\s+\S", out, re.MULTILINE)
    long = [line.strip() for line in out.splitlines() if len(line) > 80]
    assert not [line for line in long if line not in commands], "only a command to copy may be longer"


def test_a_run_leaves_a_sealed_folder_and_the_html_report(tiny_run: tuple[Path, int, str, str]):
    """Everything a report needs is in the folder, and one offline page beside it."""
    folder, *_ = tiny_run
    (path,) = (folder / "perfdoctor-runs").iterdir()

    run = store.open_run(path)
    assert "complete" == run.state
    phases = [p.name for p in run.facts.phases]
    assert ["load", "warmup", "baseline", "steady", "experiment", "profile"] == list(dict.fromkeys(phases))
    assert {"disk", "cpu", "memory"} <= {s.probe for s in run.read_samples()}
    assert "<html" in (path / "report.html").read_text()
    assert run.facts.target.parameters


@pytest.mark.parametrize("form", [["--json"], ["--markdown"], []])
def test_report_shows_an_old_run_again(tiny_run: tuple[Path, int, str, str], form: list[str]):
    """Every form renders from the folder alone."""
    folder, *_ = tiny_run

    code, out, err = finish(perfdoctor("report", "latest", *form, cwd=folder))

    assert 0 == code, err
    assert "serial-server" in out


def test_report_html_refuses_to_overwrite(tiny_run: tuple[Path, int, str, str]):
    """-o FILE is written once; again needs --force."""
    folder, *_ = tiny_run
    again = ["report", "latest", "--html", "-o", "r.html"]

    assert 0 == finish(perfdoctor(*again, cwd=folder))[0]
    code, _, err = finish(perfdoctor(*again, cwd=folder))
    assert 2 == code
    assert "--force" in err
    assert 0 == finish(perfdoctor(*again, "--force", cwd=folder))[0]


def test_diagnose_judges_a_folder_again_with_the_same_answer(tiny_run: tuple[Path, int, str, str]):
    """Judging is a function of the folder: twice gives the same JSON."""
    folder, *_ = tiny_run

    first = finish(perfdoctor("diagnose", "latest", "--json", cwd=folder))
    second = finish(perfdoctor("diagnose", "latest", "--json", cwd=folder))

    assert json.loads(first[1]) == json.loads(second[1])
    assert "found" == json.loads(first[1])["verdict"]["status"]


def test_ctrl_c_seals_the_run_and_still_reports(tmp_path: Path):
    """Interrupted: exit 130, a sealed folder, and a partial report on stdout."""
    process = perfdoctor("diagnose", *SHORT[:-4], "--duration", "60s", cwd=tmp_path)
    wait_for_steady(tmp_path, process)

    process.send_signal(signal.SIGINT)
    code, out, err = finish(process, 60)

    assert 130 == code, err
    assert "interrupted" in out
    (path,) = (tmp_path / "perfdoctor-runs").iterdir()
    assert "interrupted" == store.open_run(path).facts.state
    assert (path / "report.html").exists()


def test_second_ctrl_c_does_not_wait_for_open_requests(tmp_path: Path):
    """With requests that would take minutes, two interrupts end the run within seconds."""
    slow = [
        "--model",
        "tiny:medium",
        "-c",
        "4",
        "--duration",
        "60s",
        "--output-tokens",
        "4000",
        "--warmup",
        "0",
    ]
    process = perfdoctor("diagnose", *slow, cwd=tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("perfdoctor-runs/*/samples.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(12)

    process.send_signal(signal.SIGINT)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    code, _, err = finish(process, 60)

    assert 130 == code, err
    assert time.monotonic() - began < 20


def test_kill_9_leaves_a_folder_that_reports(tmp_path: Path):
    """Nothing is sealed, yet `report` works and says that the run was interrupted."""
    process = perfdoctor("diagnose", *SHORT[:-4], "--duration", "60s", cwd=tmp_path)
    run = wait_for_steady(tmp_path, process)
    child = run.facts.target.pid

    process.kill()
    process.communicate()
    code, out, err = finish(perfdoctor("report", "latest", cwd=tmp_path))

    assert 0 == code, err
    assert "interrupted" in out
    deadline = time.monotonic() + 10
    while child and Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists(), "the model's process outlived its parent"


def test_load_test_of_a_local_model_prints_the_table(tmp_path: Path):
    """-c 4 -n 20 counts exactly twenty answers, and --json is the contract alone."""
    code, out, err = finish(
        perfdoctor("load-test", "--model", "tiny", "-c", "4", "-n", "20", "--json", cwd=tmp_path)
    )

    assert 0 == code, err
    summary = json.loads(out)
    assert {"total": 20, "ok": 20} == {k: summary["requests"][k] for k in ("total", "ok")}
    assert summary["ttft"]["p50"] > 0
    assert summary["ttft"]["p99"] is None
    assert "usage" == summary["tokens"]["source"]


def test_a_folder_that_is_no_model_is_an_error_with_advice(tmp_path: Path):
    """Exit 3, three lines, no traceback."""
    (tmp_path / "empty").mkdir()

    code, out, err = finish(perfdoctor("diagnose", "--model", "empty", cwd=tmp_path))

    assert 3 == code
    assert "" == out
    assert "config.json" in err
    assert "Do:" in err


def test_no_target_says_what_was_tried(tmp_path: Path):
    """Without a server on the usual ports the newcomer is told both ways on."""
    code, _, err = finish(perfdoctor("diagnose", cwd=tmp_path))

    if code != 2:
        pytest.skip("a server is listening on one of the usual ports of this machine")
    assert "8000" in err
    assert "--model tiny" in err


def test_the_api_key_is_in_no_byte_written(tmp_path: Path):
    """The key from the environment and a secret header reach the server and nothing else."""
    with truth.serving("--tokens", "4") as server:
        code, out, err = finish(
            perfdoctor(
                *("diagnose", "--endpoint", server.url, "-c", "2", "-n", "4", "--api-key-env", "A_KEY"),
                *("--header", "X-Extra: sk-extra-secret"),
                cwd=tmp_path,
                A_KEY="sk-live-very-secret",
            )
        )

    assert code in (0, 4), err
    written = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()) + (out + err).encode()
    assert b"very-secret" not in written
    assert b"sk-extra-secret" not in written
