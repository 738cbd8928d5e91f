"""What cannot be tried is said before anything is started: exit 2 or 3, three lines, no folder."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import pytest

from perfdoctor.model import GpuFacts, HostFacts, Trials, Verification
from perfdoctor.probes import _host
from perfdoctor.verify import _folder, _plan
from tests.inside import failed, perfdoctor

SERVER = "server --port {port}"


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without a GPU."""
    monkeypatch.setenv("PERFDOCTOR_RUNS", str(tmp_path))
    monkeypatch.setattr(_host, "host_facts", lambda: HostFacts(hostname="here", cores=2))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        (("load-in-bfloat61", "--model", "tiny"), "The nearest names: load-in-bfloat16"),
        (("load-in-bfloat16",), "no model was named"),
        (("--model", "tiny"), "no fix was named"),
        (("load-in-bfloat16", "--model", "tiny", "--pairs", "4"), "greater than or equal to 5"),
        (("x", "--before", SERVER), "--before has no counterpart"),
        (("x", "--endpoint-after", "http://127.0.0.1:9"), "--endpoint-after has no counterpart"),
        (("x", "--before", SERVER, "--endpoint-after", "http://h"), "two commands or two endpoints"),
        (("x", "--before", "server", "--after", SERVER), "the port of --before is not known"),
        (("--all",), "--all tries the catalogue on a local model"),
        (("load-in-bfloat16", "--all", "--model", "tiny"), "--all tries the catalogue"),
        (("load-in-bfloat16", "--model", "tiny", "--prompts", "x.jsonl"), "--prompts x.jsonl cannot be read"),
        (("cache=", "--model", "tiny"), "'cache=' are no settings"),
    ],
)
def test_usage(capsys: pytest.CaptureFixture[str], words, phrase: str, runs: Path):
    """Exit 2."""
    failed(2, perfdoctor(capsys, "verify", *words), phrase)

    assert [] == list(runs.iterdir())


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        (
            ("compile-with-static-cache", "--model", "tiny"),
            "it is for an NVIDIA GPU, and the model would run on cpu",
        ),
        (("raise-max-num-seqs", "--model", "tiny"), "is no setting of the local model"),
        (("load-in-bfloat16", "--model", "tinny"), "there is no model folder 'tinny'"),
        (("casche=static", "--model", "tiny"), "the local model has no setting 'casche'"),
    ],
)
def test_preconditions(capsys: pytest.CaptureFixture[str], words, phrase: str, runs: Path):
    """Exit 3, with the reason."""
    failed(3, perfdoctor(capsys, "verify", *words), phrase)

    assert [] == list(runs.iterdir())


def test_a_taken_port_and_a_closed_endpoint_are_seen_first(capsys: pytest.CaptureFixture[str], runs: Path):
    """The one belongs to somebody else, at the other nothing listens."""
    with socket.socket() as taken, socket.socket() as closed:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        closed.bind(("127.0.0.1", 0))
        port, gone = taken.getsockname()[1], closed.getsockname()[1]
        words = ("--before", SERVER, "--after", f"server --port {port}")
        failed(3, perfdoctor(capsys, "verify", *words), f"port {port} of the after side is taken")
        ends = ("--endpoint-before", f"http://127.0.0.1:{gone}", "--endpoint-after", "http://127.0.0.1:1")
        failed(3, perfdoctor(capsys, "verify", *ends), f"nothing listens on 127.0.0.1 port {gone}")

    assert [] == list(runs.iterdir())


def test_a_program_that_is_not_there(capsys: pytest.CaptureFixture[str]):
    """Named, with the way to look for it."""
    words = ("--before", "no-such-server --port {port}", "--after", SERVER)

    failed(2, perfdoctor(capsys, "verify", *words), "--before cannot be started: no-such-server")


def test_users_follow_from_what_the_fix_is_for():
    """Waiting needs several; the pace of one answer needs one. What is asked for counts."""
    load = _plan.Load(warmup_requests=1)

    assert 16 == _plan.shaped(load, None, _plan.find_fix("micro-batch-with-own-answers")).concurrency
    assert 4 == _plan.shaped(load, None, _plan.find_fix("tokenise-in-a-thread")).concurrency
    assert 1 == _plan.shaped(load, None, _plan.find_fix("compile-with-static-cache")).concurrency
    assert 7 == _plan.shaped(load, 7, None).concurrency


def test_settings_of_the_two_sides(monkeypatch: pytest.MonkeyPatch):
    """What both have in common under what the fix says of each; a GPU makes its fixes possible."""
    gpu = GpuFacts(index=0, name="NVIDIA H200")
    monkeypatch.setattr(_host, "host_facts", lambda: HostFacts(hostname="here", gpus=(gpu,)))
    monkeypatch.setattr(_plan.models, "look", lambda _: None)
    target = _plan.Scenario().target
    target = msgspec.structs.replace(target, model="tiny", options={"dtype": "bfloat16"})

    found = _plan.of_fix(_plan.find_fix("fuse-small-kernels"), _plan.Scenario(target=target), None, 6)

    assert {"dtype": "bfloat16", "cache": "static", "graph": "decode"} == found.before.settings
    assert {"dtype": "bfloat16", "cache": "static", "compile": "reduce-overhead"} == found.after.settings


@pytest.mark.parametrize("words", [("--html",), ("--fail-on", "error_rate>1%"), ("-o", "x.txt")])
def test_a_form_of_one_run_is_refused_for_a_verification(
    capsys: pytest.CaptureFixture[str], words, runs: Path
):
    """With the way to its runs."""
    (runs / "it").mkdir()
    _folder.write(runs / "it", Verification(verify="it", state="complete"))

    failed(2, perfdoctor(capsys, "report", "it", *words), "is a verification")
    assert "Verdict   not judged" in perfdoctor(capsys, "report", "latest").out


@pytest.mark.parametrize(("name", "kind"), [("verify.json", Verification), ("trials.json", Trials)])
def test_a_damaged_record_is_named(capsys: pytest.CaptureFixture[str], name: str, kind, runs: Path):
    """Not a traceback."""
    (runs / "it").mkdir()
    (runs / "it" / name).write_text("{")

    failed(2, perfdoctor(capsys, "report", "it"), f"{name} cannot be read")
    failed(2, perfdoctor(capsys, "verify", "load-in-bfloat16", "--model", "tiny", "-o", str(runs / "it")))
