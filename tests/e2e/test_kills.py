"""A load that is ended from outside: what was recorded is reported, nothing else is left, nothing hangs."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.test_cli_failures import finish, left_over, perfdoctor, start, wait_for
from tests.servers import truth

pytestmark = pytest.mark.server

PATIENCE_S = 10.0  # from the signal to the last process gone
CLOSED = ("-c", "6")
OPEN = ("--rate", "10/s", "--arrival", "constant")  # so that six are open at every instant


@pytest.fixture(scope="module")
def server() -> Iterator[truth.Truth]:
    """Answers of 0.6 s."""
    with truth.serving("--ttft-ms", "20", "--gap-ms", "20", "--tokens", "30") as running:
        yield running


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    children = psutil.Process(process.pid).children()
    return [child for child in children if "perfdoctor.loadgen.worker" in child.cmdline()]


def interrupt(process: subprocess.Popen[str]) -> None:
    """Ctrl-C of a terminal: the whole process group has it."""
    os.killpg(process.pid, signal.SIGINT)


def interrupt_twice(process: subprocess.Popen[str]) -> None:
    interrupt(process)
    time.sleep(0.1)
    interrupt(process)


def terminate(process: subprocess.Popen[str]) -> None:
    """As timeout(1) does it."""
    os.killpg(process.pid, signal.SIGTERM)


def kill(process: subprocess.Popen[str]) -> None:
    """While one of its workers is stopped, and so cannot see that its socket has ended."""
    for worker in workers_of(process)[1:]:
        worker.suspend()
    process.kill()


def kill_a_worker(process: subprocess.Popen[str]) -> None:
    workers_of(process)[-1].kill()


CASES = {
    f"{by.__name__}-{workers}": (by, workers, load)
    for by, counts, load in (
        (interrupt, (1, 2), CLOSED),
        (interrupt_twice, (1, 2), OPEN),
        (terminate, (1, 2), CLOSED),
        (kill, (1, 2), CLOSED),
        (kill_a_worker, (2,), OPEN),
    )
    for workers in counts
}


class Case:
    """One load, ended in the middle: how it ended and how long that took."""

    def __init__(self, name: str, cwd: Path, endpoint: str) -> None:
        self.by, self.workers, load = CASES[name]
        self.cwd, self._mark = cwd, uuid.uuid4().hex
        words = ["load-test", *load, "--duration", "60s", "--workers", str(self.workers)]
        self.process = start(
            *words, "--endpoint", endpoint, cwd=cwd, env={"MARK": self._mark}, start_new_session=True
        )

    def end(self) -> None:
        assert (self.workers if self.workers > 1 else 0) == len(workers_of(self.process))
        began_s = time.monotonic()
        self.by(self.process)
        self.ended = finish(self.process)
        while (left := left_over(self._mark)) and time.monotonic() - began_s < PATIENCE_S:
            time.sleep(0.05)
        self.left, self.took_s = left, time.monotonic() - began_s


@pytest.fixture(scope="module")
def cases(server: truth.Truth, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """All of them at once: they mostly wait."""
    made = {name: Case(name, tmp_path_factory.mktemp("case"), server.url) for name in CASES}
    for case in made.values():
        wait_for(case.process, case.cwd)
    time.sleep(1.0)  # of load: some answers in a row
    with ThreadPoolExecutor(len(made)) as pool:
        for done in [pool.submit(case.end) for case in made.values()]:
            done.result()
    return made


def requests_in(cwd: Path) -> list[dict[str, Any]]:
    """Of the steady phase, off the disk; a last line that was cut off is none."""
    (log,) = cwd.glob("runs/*/requests.jsonl")
    rows = [json.loads(line) for line in log.read_bytes().split(b"\n")[:-1]]
    return [row for row in rows if row["phase"] == "steady"]


def recomputed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ok = [row for row in rows if row["outcome"] == "ok" and not row["censored"]]
    ttft_s = sorted(row["first_token_s"] - row["sent_s"] for row in ok)
    return {
        "total": len(rows),
        "ok": len(ok),
        "censored": sum(row["censored"] for row in rows),
        "failed": Counter(row["outcome"] for row in rows if row not in ok and not row["censored"]),
        "ttft_p50": ttft_s[math.ceil(0.5 * len(ttft_s)) - 1],
    }


def reported(cwd: Path) -> dict[str, Any]:
    shown = perfdoctor("report", "latest", "--json", cwd=cwd)
    assert 0 == shown.code, shown.err
    found = json.loads(shown.out)
    counts = {name: found["requests"][name] for name in ("total", "ok", "censored", "failed")}
    return {**counts, "ttft_p50": found["ttft"]["p50"], "state": found["state"]}


@pytest.mark.parametrize("name", CASES)
def test_a_load_that_is_ended_reports_what_it_recorded(cases: dict[str, Case], name: str):
    """The report is the raw log recomputed, no process is left, and it takes no longer than one answer."""
    case = cases[name]
    rows = requests_in(case.cwd)
    code = {kill: -signal.SIGKILL, kill_a_worker: 4}.get(case.by, 130)
    state = "failed" if case.by is kill_a_worker else "interrupted"

    assert code == case.ended.code, case.ended.err
    assert not case.left
    assert {**recomputed(rows), "state": state} == reported(case.cwd)
    assert set(range(case.workers)) == {row["worker"] for row in rows if row["outcome"] == "ok"}
    assert case.took_s < PATIENCE_S


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("interrupt")])
def test_only_a_second_ctrl_c_cuts_answers_off(cases: dict[str, Case], name: str):
    """After the first one they may finish."""
    case = cases[name]
    censored = sum(row["censored"] for row in requests_in(case.cwd))

    assert (case.by is interrupt_twice) == (censored > 0)


def test_a_killed_worker_is_named_and_the_others_are_stopped(cases: dict[str, Case]):
    """Its finished requests are kept; what the others had open is cancelled, since the load is no whole."""
    case = cases["kill_a_worker-2"]

    assert "driver process 2 of 2 was killed by signal 9" in case.ended.err
    assert {0} == {row["worker"] for row in requests_in(case.cwd) if row["censored"]}


@pytest.mark.parametrize("after_s", [0.0, 0.3])
def test_a_ctrl_c_while_the_workers_start(server: truth.Truth, tmp_path: Path, after_s: float):
    """The same end: no traceback of theirs, no process left."""
    mark = uuid.uuid4().hex
    words = ["load-test", *CLOSED, "--workers", "2", "--endpoint", server.url]
    process = start(*words, cwd=tmp_path, env={"MARK": mark}, start_new_session=True)
    while not workers_of(process):
        time.sleep(0.005)
    time.sleep(after_s)

    interrupt(process)
    ended = finish(process)

    assert 130 == ended.code, ended.err
    assert not left_over(mark)
