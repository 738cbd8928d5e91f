"""All that can go wrong, through the command line: exit code, three lines, nothing lost, no secret told."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import psutil
import pytest

from perfdoctor import store
from perfdoctor.reports import _schemas
from tests.e2e.test_preflight_failures import models, stub, tls  # noqa: F401 - a fixture
from tests.servers import truth
from tests.servers._server import free_port
from tests.servers.truth_scripts import (
    CHUNKED_HEAD,
    DONE,
    FINISH,
    GOOD,
    LAST_CHUNK,
    ROLE,
    TOKENS,
    Step,
    chunk,
    delta,
    frame,
    stream,
)

pytestmark = pytest.mark.server

QUICK = ["-c", "2", "-n", "6", "--warmup", "1"]
UNTRUSTED = 4
KEY = "sk-live-0123456789abcdefghijklmnopqrstuvwxyz"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def start(*words: str, cwd: Path, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.Popen[str]:
    """A perfdoctor process whose runs land in `cwd`/runs."""
    return subprocess.Popen(
        [sys.executable, "-m", "perfdoctor", *words],
        cwd=cwd,
        env={**os.environ, "PERFDOCTOR_RUNS": str(cwd / "runs"), **(env or {})},
        **{
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            **more,
        },
    )


def finish(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=90)
    assert "Traceback" not in f"{out}{err}", err
    return Ended(process.returncode, out or "", err or "")


def perfdoctor(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> Ended:
    return finish(start(*words, cwd=cwd, env=env))


def failed(code: int, ended: Ended, phrase: str = "") -> None:
    """The exit code, an empty stdout, and an error of three lines: what, why, Do."""
    lines = ended.err.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("perfdoctor: ")), len(lines))
    error = lines[begin:]

    assert code == ended.code, ended.err
    assert "" == ended.out
    assert 2 <= len(error) <= 3, ended.err
    assert error[-1].startswith("  Do: "), ended.err
    assert phrase in error[0], ended.err


def ran(ended: Ended) -> bool:
    """Measured to the end; whether the numbers can be trusted depends on what else this machine does."""
    return ended.code in (0, UNTRUSTED)


def the_run(cwd: Path) -> store.Run:
    (path,) = (cwd / "runs").iterdir()
    return store.open_run(path)


def everything_written(cwd: Path, *ended: Ended) -> bytes:
    files = b"".join(path.read_bytes() for path in cwd.rglob("*") if path.is_file())
    return files + "".join(e.out + e.err for e in ended).encode()


def wait_for(process: subprocess.Popen[str], cwd: Path, phase: str = "steady") -> None:
    """Until a request of the phase is on the disk."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        files = cwd.glob("runs/*/requests.jsonl")
        if any(f'"phase":"{phase}"' in path.read_text(errors="replace") for path in files):
            return
        time.sleep(0.05)
    raise AssertionError(f"no {phase} phase was reached: {finish(process)}")


def left_over(mark: str) -> list[list[str]]:
    """Command lines of processes that were started with the mark in their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.cmdline())
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[truth.Truth]:
    with truth.serving("--ttft-ms", "5", "--gap-ms", "5", "--tokens", "8") as running:
        for name, steps in ODD.items():
            running.put(name, steps)
        yield running


ODD: dict[str, list[Step]] = {
    "garbage": [CHUNKED_HEAD, chunk(bytes(range(256)) * 40), LAST_CHUNK],
    "deep": stream(ROLE, b'data: {"usage":' + b"[" * 100_000 + b"}\n\n", FINISH, DONE),
    "no-tokens": [CHUNKED_HEAD, *[step for _ in range(80) for step in (chunk(b": ping\n\n"), 0.05)]],
    "slow-bytes": [CHUNKED_HEAD, *[step for b in TOKENS[0] * 3 for step in (chunk(bytes([b])), 0.05)]],
    "slow-head": [step for b in CHUNKED_HEAD * 3 for step in (bytes([b]), 0.05)],
    "silent": [30.0],
    "503": [b"HTTP/1.1 503 Busy\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"],
    "403": [b"HTTP/1.1 403 No\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"],
    "markup": stream(frame({"error": {"message": "[bold]x[/nope] <script>alert(1)</script>\x1b[31m\n"}})),
    "echo": stream(
        delta(reasoning_content=f"{KEY} is it"), delta(content=KEY), delta(f"stop {KEY}"), *GOOD[-2:]
    ),
}


# ------------------------------------------------------------------------------ answers that are none

REFUSALS = {
    "html": "web page", "json": "in one piece", "401": "HTTP 401", "403": "HTTP 403", "404": "HTTP 404",
    "429": "HTTP 429", "500": "HTTP 500", "503": "HTTP 503", "redirect": "HTTP 302",
    "unknown-model": "does not serve a model", "empty": "no token", "truncated": "breaks off every answer",
    "cut-chunk": "breaks off every answer", "reset": "closes every connection",
    "error-first": "out of memory", "error-later": "engine died", "bad-json": "no OpenAI stream",
    "bad-chunks": "no OpenAI stream", "not-http": "no OpenAI stream", "garbage": "no token",
    "deep": "no OpenAI stream", "markup": "[bold]x[/nope] <script>alert(1)</script>\\x1b[31m",
    "hangs": "no answer in time", "silent": "no answer in time", "no-tokens": "no answer in time",
    "slow-bytes": "no answer in time", "slow-head": "no answer in time",
}  # fmt: skip


@pytest.mark.parametrize("script", REFUSALS)
def test_a_server_that_answers_nothing_usable(server: truth.Truth, tmp_path: Path, script: str):
    """Exit 3 with the reason, before long; the requests made are kept, and the folder is named."""
    limit = ["--timeout", "300ms"]

    ended = perfdoctor("load-test", *QUICK, *limit, "--endpoint", server.scripted(script), cwd=tmp_path)

    failed(3, ended, REFUSALS[script])
    run = the_run(tmp_path)
    assert str(run.path) in ended.err
    assert ("failed", True) == (run.state, len(run.read_requests()) > 0)


@pytest.mark.parametrize("script", ["401", "truncated"])
def test_a_diagnosis_that_failed_can_still_be_reported(server: truth.Truth, tmp_path: Path, script: str):
    """Every form of the report shows that it failed, and why."""
    limit = ["--timeout", "300ms"]

    ended = perfdoctor("diagnose", *QUICK, *limit, "--endpoint", server.scripted(script), cwd=tmp_path)

    failed(3, ended)
    for form in ([], ["--json"], ["--markdown"]):
        shown = perfdoctor("report", *form, cwd=tmp_path)
        assert 0 == shown.code
        assert "failed" in shown.out


def test_some_truncated_answers_are_a_result(server: truth.Truth, tmp_path: Path):
    """One in three: counted by class, left out of the latencies, and the trust says so. Not a dead target."""
    endpoint = server.scripted("good+good+truncated")

    ended = perfdoctor("load-test", "-c", "1", "-n", "30", "--endpoint", endpoint, "--json", cwd=tmp_path)

    assert ran(ended), ended.err
    summary = json.loads(ended.out)
    assert {"truncated": 10} == summary["requests"]["failed"]
    assert (20, 20) == (summary["requests"]["ok"], summary["ttft"]["n"])
    assert "10 of 30 requests failed, most often truncated" in summary["trust"]["reasons"]


def test_most_answers_truncated_cannot_be_trusted(server: truth.Truth, tmp_path: Path):
    """Finished, but exit 4."""
    endpoint = server.scripted("good+truncated+truncated")

    ended = perfdoctor("load-test", "-c", "1", "-n", "12", "--endpoint", endpoint, cwd=tmp_path)

    assert 4 == ended.code, ended.err
    assert "truncated 8" in ended.out


# ------------------------------------------------------------------------------ nobody there, or no API


@pytest.mark.parametrize("command", ["load-test", "diagnose"])
@pytest.mark.parametrize(
    ("url", "phrase"),
    [("http://127.0.0.1:{closed}", "nothing listens"), ("http://no-such-host.invalid", "does not resolve")],
)
def test_nobody_is_there(tmp_path: Path, command: str, url: str, phrase: str):
    """Said at once; no folder is left behind by a run that never began."""
    ended = perfdoctor(command, "--endpoint", url.format(closed=free_port()), cwd=tmp_path)

    failed(3, ended, phrase)
    assert not list(tmp_path.rglob("run.json"))


def test_tls_asked_of_a_plain_port(server: truth.Truth, tmp_path: Path):
    """The right address is what to do."""
    endpoint = server.url.replace("http", "https")

    ended = perfdoctor("load-test", "--endpoint", endpoint, cwd=tmp_path)

    failed(3, ended, "does not speak TLS")
    assert f"use {server.url}" in ended.err


def test_plain_http_asked_of_a_tls_port(tls: ssl.SSLContext, tmp_path: Path):  # noqa: F811 - the fixture
    """The same the other way round."""
    with stub(models("tiny"), tls) as place:
        ended = perfdoctor("diagnose", "--endpoint", f"http://{place}", cwd=tmp_path)

    failed(3, ended, "expects TLS")
    assert f"use https://{place}" in ended.err


@pytest.mark.parametrize(
    ("status", "kind", "body", "phrase"),
    [
        (200, "text/html", "<html>hello</html>", "web page"),
        (200, "application/json", "[" * 100_000, "something else than a list"),
        (401, "application/json", '{"error": "no key"}', "401"),
        (404, "application/json", "{}", "no /v1/models"),
        (503, "text/html", "<html>loading</html>", "503"),
    ],
)
def test_the_model_list_is_none(tmp_path: Path, status: int, kind: str, body: str, phrase: str):
    """Found before any load is sent."""
    with stub({"GET /v1/models": (status, kind, body)}) as place:
        failed(3, perfdoctor("load-test", "--endpoint", f"http://{place}", cwd=tmp_path), phrase)


def test_an_unknown_model_name(server: truth.Truth, tmp_path: Path):
    """The names that exist are told."""
    ended = perfdoctor("diagnose", "--endpoint", server.url, "--model", "truht", cwd=tmp_path)

    failed(3, ended, "serves no model named 'truht'")
    assert "use --model truth" in ended.err


# ------------------------------------------------------------------------------ usage

USAGE = {
    "no requests": ["load-test", "-n", "0"],
    "no users": ["load-test", "-c", "0"],
    "no number": ["load-test", "-n", "many"],
    "no duration": ["load-test", "--duration", "soon"],
    "zero duration": ["load-test", "--duration", "0s"],
    "endless timeout": ["load-test", "--timeout", "9" * 400],
    "unknown API": ["diagnose", "--api", "grpc"],
    "header without colon": ["load-test", "--header", "X-Tenant blue"],
    "header with a space": ["load-test", "--header", "X Tenant: blue"],
    "header over two lines": ["load-test", "--header", "X-Tenant: blue\nX-Other: green"],
    "header outside ASCII": ["load-test", "--header", "X-Tenant: grün"],
    "unset key": ["diagnose", "--api-key-env", "PERFDOCTOR_NO_SUCH_KEY"],
    "unsendable key": ["diagnose", "--api-key-env", "TWO_LINES"],
    "password in the URL": ["diagnose", "--endpoint", f"http://me:{KEY}@127.0.0.1:1/v1"],
    "password without scheme": ["load-test", "--endpoint", f"me:{KEY}@127.0.0.1:1"],
    "key in the query": ["load-test", "--endpoint", f"http://127.0.0.1:1/v1?key={KEY}"],
    "unknown option": ["load-test", "--nope"],
    "unknown command": ["nonsense"],
    "unknown run": ["report", "nonsense"],
    "unknown page": ["explain", "nonsense"],
    "two forms": ["report", "--html", "--json"],
    "a run and a target": ["diagnose", "latest", "--model", "tiny"],
}


@pytest.mark.parametrize("case", USAGE)
def test_impossible_orders(server: truth.Truth, tmp_path: Path, case: str):
    """Exit 2 before anything is done, and nothing of a password is repeated."""
    words = USAGE[case]
    if words[0] in ("load-test", "diagnose") and not {"--endpoint", "--model"} & set(words):
        words = [*words, "--endpoint", server.url]

    ended = perfdoctor(*words, cwd=tmp_path, env={"TWO_LINES": "a\nb"})

    failed(2, ended)
    assert KEY.encode() not in everything_written(tmp_path, ended)
    assert not list(tmp_path.rglob("run.json"))


# ------------------------------------------------------------------------------ the run folder


def test_out_that_cannot_be_a_run_folder(server: truth.Truth, tmp_path: Path):
    """A file, a path through a file, and a folder that holds a run already."""
    (tmp_path / "file").touch()
    again = ["load-test", "-n", "1", "--endpoint", server.url, "--out"]

    failed(2, perfdoctor(*again, "file", cwd=tmp_path), "is a file")
    failed(3, perfdoctor(*again, "file/run", cwd=tmp_path), "Not a directory")
    assert ran(perfdoctor(*again, "run", cwd=tmp_path))
    failed(2, perfdoctor(*again, "run", cwd=tmp_path), "already holds a run")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    disk = tmp_path / "runs"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", disk], check=False).returncode:
        pytest.skip("cannot mount here")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_ends_the_run_and_keeps_what_was_written(
    server: truth.Truth, tmp_path: Path, small_disk: Path
):
    """Exit 3 long before the time is over; reports work, but cannot be put onto that disk."""
    ended = perfdoctor("load-test", "-c", "8", "--duration", "60s", "--endpoint", server.url, cwd=tmp_path)

    failed(3, ended, "No space left")
    shown = perfdoctor("report", "--json", cwd=tmp_path)
    assert json.loads(shown.out)["requests"]["ok"] > 20
    assert 0 == perfdoctor("report", "--html", "-o", "elsewhere.html", cwd=tmp_path).code
    failed(3, perfdoctor("report", "--html", cwd=tmp_path), "No space left")
    assert not list(small_disk.rglob("*.part"))


def test_a_read_only_disk_is_said_before_any_load(server: truth.Truth, tmp_path: Path, small_disk: Path):
    """Nothing to lose yet."""
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)

    failed(3, perfdoctor("load-test", "--endpoint", server.url, cwd=tmp_path), "Read-only file system")


@pytest.fixture(scope="module")
def old_run(server: truth.Truth, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished diagnosis, to be copied and spoilt."""
    cwd = tmp_path_factory.mktemp("old")
    ended = perfdoctor("diagnose", *QUICK, "--endpoint", server.url, cwd=cwd)
    assert ran(ended), ended.err
    return the_run(cwd).path


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b'{"schema": 99}', "newer perfdoctor"),
        (b"\x00\xffgarbage", "damaged"),
        (b"[]", "damaged"),
        (None, "no run folder"),
    ],
)
def test_a_folder_that_is_no_run_of_ours(tmp_path: Path, content: bytes | None, phrase: str):
    """Newer, garbage, of another kind, empty: the same for showing and for judging."""
    (tmp_path / "odd").mkdir()
    if content is not None:
        (tmp_path / "odd" / "run.json").write_bytes(content)

    failed(2, perfdoctor("report", "odd", "--json", cwd=tmp_path), phrase)
    failed(2, perfdoctor("diagnose", "odd", cwd=tmp_path), phrase)


def test_torn_and_damaged_lines_cost_themselves_only(old_run: Path, tmp_path: Path):
    """The report is made of the rest, and says how many lines are missing."""
    folder = Path(shutil.copytree(old_run, tmp_path / "run"))
    whole = len(store.open_run(folder).read_samples())
    with (folder / "samples.jsonl").open("ab") as file:
        file.write(b'garbage\n{"at_s": 1}\n{"at_s":1.0,"probe":"di')

    ended = perfdoctor("report", "run", "--json", cwd=tmp_path)

    assert 0 == ended.code, ended.err
    assert "samples.jsonl: 2 damaged lines" in ended.err
    assert whole == len(store.open_run(folder).read_samples())


def test_a_run_without_a_request_has_a_report(old_run: Path, tmp_path: Path):
    """Nothing measured is a result of its own: no zero, no crash, in every form."""
    folder = Path(shutil.copytree(old_run, tmp_path / "run"))
    (folder / "requests.jsonl").unlink()
    (folder / "samples.jsonl").write_bytes(b"")

    for form in ([], ["--json"], ["--markdown"], ["--html"]):
        ended = perfdoctor("report", "run", *form, cwd=tmp_path)
        assert 0 == ended.code, ended.err
    assert "insufficient" in (folder / "diagnosis.json").read_text()


def test_a_report_overwrites_nothing_unasked(old_run: Path, tmp_path: Path):
    """-o to a file, a folder, and a place that does not exist."""
    (tmp_path / "taken.html").write_text("mine")
    html = ["report", str(old_run), "--html", "-o"]

    failed(2, perfdoctor(*html, "taken.html", cwd=tmp_path), "exists already")
    failed(2, perfdoctor(*html, ".", cwd=tmp_path), "is a folder")
    failed(2, perfdoctor(*html, "none/report.html", cwd=tmp_path), "there is no folder")
    assert "mine" == (tmp_path / "taken.html").read_text()


# ------------------------------------------------------------------------------ the local model


def spoil(folder: Path, fault: str) -> None:
    config = folder / "config.json"
    if fault == "no config":
        config.unlink()
    elif fault == "garbage config":
        config.write_bytes(b"\xff\x00{")
    elif fault == "no weights":
        (folder / "model.safetensors").unlink()
    elif fault == "torn weights":
        os.truncate(folder / "model.safetensors", 5000)
    elif fault == "garbage weights":
        (folder / "model.safetensors").write_bytes(os.urandom(4096))
    elif fault == "unknown architecture":
        config.write_text(json.dumps({**json.loads(config.read_text()), "model_type": "martian"}))
    elif fault == "no tokenizer":
        for path in folder.glob("*token*"):
            path.unlink()


@pytest.mark.parametrize(
    ("fault", "phrase"),
    [
        ("no config", "no model folder"),
        ("garbage config", "no model folder"),
        ("no weights", "no weights"),
        ("torn weights", "broken"),
        ("garbage weights", "broken"),
        ("unknown architecture", "cannot serve the architecture"),
        ("no tokenizer", "no usable tokenizer"),
    ],
)
def test_a_model_that_cannot_be_served(tiny_model: Path, tmp_path: Path, fault: str, phrase: str):
    """Each cause by its name; no process is left behind."""
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    spoil(folder, fault)
    mark = uuid.uuid4().hex

    ended = perfdoctor("diagnose", "--model", "model", cwd=tmp_path, env={"MARK": mark})

    failed(3, ended, phrase)
    assert not left_over(mark)


# ------------------------------------------------------------------------------ ends in the middle


def test_a_server_killed_while_it_is_measured(tmp_path: Path):
    """Exit 3; what was measured until then is kept, and the report says why there is no more."""
    with truth.serving("--ttft-ms", "5", "--gap-ms", "5", "--tokens", "4") as mortal:
        process = start("load-test", "-c", "4", "--duration", "60s", "--endpoint", mortal.url, cwd=tmp_path)
        wait_for(process, tmp_path)
        os.kill(mortal.pid, signal.SIGKILL)
        ended = finish(process)

    failed(3, ended, "no longer accepts connections")
    shown = perfdoctor("report", cwd=tmp_path)
    assert 0 == shown.code
    assert "the run failed" in shown.out
    assert any(request.outcome == "ok" for request in the_run(tmp_path).read_requests())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_seals_the_run(server: truth.Truth, tmp_path: Path, number: signal.Signals):
    """Ctrl-C, `timeout` and a closed terminal end alike: 130, sealed, and the numbers so far."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored here, as under nohup, and so it is by what is started here")
    process = start("load-test", "--duration", "60s", "--endpoint", server.url, "--json", cwd=tmp_path)
    wait_for(process, tmp_path)

    process.send_signal(number)
    ended = finish(process)

    assert 130 == ended.code, ended.err
    assert json.loads(ended.out)["requests"]["ok"] > 0
    assert "interrupted" == the_run(tmp_path).facts.state


@pytest.mark.parametrize(
    "numbers", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM), (signal.SIGINT,) * 3]
)
def test_a_signal_while_the_model_loads_leaves_no_process(
    tmp_path: Path, numbers: tuple[signal.Signals, ...]
):
    """Also when it comes twice, as from timeout(1), or from a finger that does not stop."""
    mark = uuid.uuid4().hex
    process = start("diagnose", "--model", "tiny", "-q", cwd=tmp_path, env={"MARK": mark})
    deadline = time.monotonic() + 30
    while not any("perfdoctor.local.server" in line for line in left_over(mark)):
        assert time.monotonic() < deadline
        time.sleep(0.05)

    for number in numbers:
        process.send_signal(number)
    ended = finish(process)

    assert 130 == ended.code, ended.err
    assert not left_over(mark)
    assert "interrupted" == the_run(tmp_path).facts.state


def test_an_impatient_ctrl_c_in_a_run_keeps_its_report(server: truth.Truth, tmp_path: Path):
    """The second one, at once, cancels open requests and no more."""
    process = start("load-test", "--duration", "60s", "--endpoint", server.url, cwd=tmp_path)
    wait_for(process, tmp_path)

    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    ended = finish(process)

    assert 130 == ended.code, ended.err
    assert "Requests" in ended.out


def test_a_report_on_a_run_that_goes_on(server: truth.Truth, tmp_path: Path):
    """It shows what there is, says that it is not all, and disturbs nothing."""
    process = start("load-test", "--duration", "3s", "--endpoint", server.url, cwd=tmp_path)
    wait_for(process, tmp_path)

    during = perfdoctor("report", cwd=tmp_path)
    after = finish(process)

    assert 0 == during.code and ran(after), during.err + after.err
    assert "still going on" in during.out
    assert "still going on" not in perfdoctor("report", cwd=tmp_path).out


def test_runs_of_the_same_second_do_not_meet(server: truth.Truth, tmp_path: Path):
    """Each has its own folder with its own requests."""
    both = [start("load-test", "-n", "5", "--endpoint", server.url, cwd=tmp_path) for _ in range(3)]

    assert all(map(ran, map(finish, both)))
    runs = [store.open_run(path) for path in (tmp_path / "runs").iterdir()]
    assert [5, 5, 5] == [sum(r.phase == "steady" for r in run.read_requests()) for run in runs]


# ------------------------------------------------------------------------------ odd surroundings


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full", "2>&1 | true", ">&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_cost_the_run(server: truth.Truth, tmp_path: Path, redirect: str):
    """Nobody listens: the run is made and kept all the same."""
    command = f"{sys.executable} -m perfdoctor load-test -n 4 --endpoint {server.url}"

    process = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{command} {redirect}"],
        cwd=tmp_path,
        env={**os.environ, "PERFDOCTOR_RUNS": str(tmp_path / "runs")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert process.returncode in (0, UNTRUSTED), process.stderr
    assert "" == process.stderr or "Looking" in process.stderr
    assert "complete" == the_run(tmp_path).facts.state


@pytest.mark.parametrize(("redirect", "code"), [("| head -n 1", 0), ("> /dev/full", 3)])
@pytest.mark.parametrize("form", ["", "--json"])
def test_a_result_that_cannot_be_written(old_run: Path, tmp_path: Path, redirect: str, code: int, form: str):
    """A reader who has had enough is no error; a full disk is one."""
    command = f"{sys.executable} -m perfdoctor report {old_run} {form} {redirect}"

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert code == done.returncode, done.stderr
    assert ("cannot write the result" in done.stderr) == (code == 3)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"TERM": "dumb", "COLUMNS": "30"},
        {"HOME": "/nonexistent"},
    ],
)
def test_poor_surroundings(old_run: Path, tmp_path: Path, env: dict[str, str]):
    """No locale, no UTF-8, no terminal, no home: the report is made, and its JSON stays the same."""
    plain = perfdoctor("report", str(old_run), cwd=tmp_path, env=env)
    encoded = perfdoctor("report", str(old_run), "--json", cwd=tmp_path, env=env)

    assert (0, 0) == (plain.code, encoded.code), plain.err + encoded.err
    assert "Verdict" in plain.out
    assert json.loads((old_run / "diagnosis.json").read_text()) == json.loads(encoded.out)


def test_a_working_directory_that_is_gone(server: truth.Truth, tmp_path: Path):
    """Nowhere to put the run: said, with the way out, which works."""
    command = f"""
        mkdir gone && cd gone && rmdir ../gone
        {shutil.which("env")} -u PERFDOCTOR_RUNS {sys.executable} -m perfdoctor load-test -n 2 --endpoint {server.url}
        echo "code $?"
        {sys.executable} -m perfdoctor load-test -n 2 --endpoint {server.url} --out {tmp_path}/there
    """  # noqa: E501
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )

    assert "code 3" in done.stdout, done.stderr
    assert "was removed" in done.stderr
    assert done.returncode in (0, UNTRUSTED), done.stderr


# ------------------------------------------------------------------------------ addresses and names


def replying(name: str) -> dict[str, tuple[int, str, str]]:
    good = b"".join(GOOD).decode()
    return {**models(name), "POST /v1/chat/completions": (200, "text/event-stream", good)}


@pytest.mark.parametrize("form", ["{}/", "{}/v1", "{}/v1/", "{}/s/good", "HTTP{}"])
def test_spellings_of_an_endpoint(server: truth.Truth, tmp_path: Path, form: str):
    """With a path, slashes at the end, a shouted scheme."""
    endpoint = form.format(server.url.removeprefix("http") if form.startswith("HTTP") else server.url)

    ended = perfdoctor("load-test", "-n", "2", "--endpoint", endpoint, cwd=tmp_path)

    assert ran(ended), ended.err


def test_an_ipv6_address(tmp_path: Path):
    """In brackets, as URLs have it."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with stub(replying("six"), host="::1") as place:
        ended = perfdoctor("load-test", "-n", "4", "--endpoint", f"http://{place}", "--json", cwd=tmp_path)

    assert 4 == json.loads(ended.out)["requests"]["ok"], ended.err


NAMES = {
    "markup": "[bold]x[/nope]",
    "script": "<script>alert(1)</script>",
    "lines": "a\nb\x1b[2J\u202ec",
    "long": "x" * 10_000,
}


@pytest.mark.parametrize(
    ("command", "case"),
    [("diagnose", "markup"), ("diagnose", "script"), ("load-test", "lines"), ("load-test", "long")],
)
def test_names_from_outside_are_shown_not_obeyed(tmp_path: Path, command: str, case: str):
    """Markup, HTML, escape sequences, line feeds, any length: on a terminal, in Markdown and in HTML."""
    with stub(replying(NAMES[case])) as place:
        ended = perfdoctor(command, *QUICK, "--endpoint", f"http://{place}", cwd=tmp_path)
    run = the_run(tmp_path)
    html = perfdoctor("report", "--html", cwd=tmp_path)
    markdown = perfdoctor("report", "--markdown", cwd=tmp_path)

    assert ran(ended), ended.err
    page = (run.path / "report.html").read_text()
    for text in (ended.out, ended.err, html.err, markdown.out, page):
        assert "\x1b[2J" not in text and "\u202e" not in text
    assert "<script>alert" not in page
    assert NAMES[case] == run.facts.target.model


# ------------------------------------------------------------------------------ secrets


@pytest.mark.parametrize("script", ["echoes-key", "echo"])
@pytest.mark.parametrize(("command", "way"), [("diagnose", "key"), ("load-test", "header")])
def test_a_key_that_the_server_repeats_is_in_no_byte_written(
    server: truth.Truth, tmp_path: Path, command: str, script: str, way: str
):
    """In an error's body, in the text, in the reason of the end: masked before anything is cut or kept."""
    flags = ["--api-key-env", "A_KEY"] if way == "key" else ["--header", f"Authorization: Bearer {KEY}"]

    ended = perfdoctor(
        command, *QUICK, *flags, "--endpoint", server.scripted(script), cwd=tmp_path, env={"A_KEY": KEY}
    )
    shown = [
        perfdoctor("report", *form, cwd=tmp_path) for form in ([], ["--json"], ["--markdown"], ["--html"])
    ]

    written = everything_written(tmp_path, ended, *shown)
    assert KEY[:16].encode() not in written
    assert b"[redacted]" in written
    assert ended.code == (3 if script == "echoes-key" else ended.code)


@pytest.mark.parametrize("key", ["chat", "steady", "true", "1234"])
def test_a_key_that_is_an_everyday_word(server: truth.Truth, tmp_path: Path, key: str):
    """It does not eat the records it occurs in."""
    flags = ["--api-key-env", "A_KEY", "--header", f"X-Mode: {key}"]

    ended = perfdoctor(
        "load-test", *QUICK, *flags, "--endpoint", server.url, "--json", cwd=tmp_path, env={"A_KEY": key}
    )

    assert 6 == json.loads(ended.out)["requests"]["ok"], ended.err


def test_the_servers_own_command_line_is_not_kept(tmp_path: Path):
    """It is read to recognise the engine, and it may hold keys."""
    secret = "sk-on-the-command-line"
    command = [sys.executable, "-X", f"api_key={secret}", "-m", "tests.servers.truth", "--tokens", "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=truth.ROOT, text=True) as child:
        assert child.stdout
        url = f"http://127.0.0.1:{int(child.stdout.readline())}"
        ended = perfdoctor("diagnose", "-c", "2", "--duration", "4s", "--endpoint", url, cwd=tmp_path)
        child.kill()

    assert ran(ended), ended.err
    assert secret.encode() not in everything_written(tmp_path, ended)
    assert the_run(tmp_path).facts.target.pid == child.pid


# ------------------------------------------------------------------------------ JSON


def strictly(text: str) -> Any:
    """JSON without NaN and infinities, and nothing beside it."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_is_all_that_is_on_stdout(server: truth.Truth, old_run: Path, tmp_path: Path):
    """Of every command that has it, and as the shipped schemas promise."""
    schemas = {name: json.loads(text) for name, text in _schemas.generate().items()}
    diagnosis, summary = schemas["diagnosis.schema.json"], schemas["load-summary.schema.json"]
    cases = [
        (["load-test", *QUICK, "--endpoint", server.url], summary),
        (["report", "latest"], summary),
        (["diagnose", *QUICK, "--endpoint", server.url], diagnosis),
        (["report", "latest"], diagnosis),
        (["diagnose", str(old_run)], diagnosis),
        (["check"], None),
        (["check", "--endpoint", server.url], None),
    ]
    for words, schema in cases:
        ended = perfdoctor(*words, "--json", cwd=tmp_path)
        assert ran(ended), ended.err
        found = strictly(ended.out)
        if schema:
            jsonschema.validate(found, schema)
        else:
            assert {"probe", "status"} <= set(found[0])
