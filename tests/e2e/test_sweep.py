"""`perfdoctor sweep` as a person runs it: on a server of known capacity, and on a real one."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from perfdoctor import store
from perfdoctor.reports import _schemas
from tests.e2e._command import perfdoctor as run
from tests.e2e.test_cli_failures import finish, perfdoctor, start
from tests.servers import truth
from tests.servers._server import Server
from tests.servers.truth import Truth

pytestmark = [pytest.mark.server, pytest.mark.alone]
TRIES = 5  # on a machine with other work a level or two is slower than the server


@pytest.fixture(scope="module")
def server() -> Iterator[Truth]:
    with truth.serving() as running:
        yield running


def four_at_once(server: Truth) -> str:
    """50 ms an answer, four at once: 80 answers a second at most."""
    return server.timed(ttft_ms=10, gap_ms=8, tokens=6, slots=4)


def sweep(endpoint: str, *words: str, cwd: Path, good: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first sweep that is as it must be, or the last; its JSON keeps to the schema."""
    for attempt in range(TRIES):
        folder = cwd / str(attempt)
        _, found, _ = run("sweep", "--endpoint", endpoint, *words, "-o", "it", cwd=folder)
        jsonschema.validate(found, json.loads(_schemas.generate()["sweep.schema.json"]))
        found["cwd"] = folder
        if good(found):
            break
    return found


def test_the_knee_of_four_at_once_is_four(server: Truth, tmp_path: Path) -> None:
    """80 requests/s at 4 users, 8 and 16, where the doubling ends. Each level is a run; the report is it."""

    def good(found: dict[str, Any]) -> bool:
        rates = [level["requests_per_s"] for level in found["levels"] if not level["repeated"]]
        expected = pytest.approx([20, 40, 80, 80, 80], rel=0.12)
        return rates == expected and found["knee"]["level"] == 4

    found = sweep(four_at_once(server), "-n", "30", cwd=tmp_path, good=good)
    cwd = found.pop("cwd")

    assert good(found), (found["levels"], found["knee"])
    assert [1, 2, 4, 8, 16] == [level["level"] for level in found["levels"] if not level["repeated"]]
    for level in found["levels"]:
        kept = store.open_run(cwd / "it" / level["run"])
        assert ("complete", level["level"]) == (kept.state, kept.facts.scenario.load.concurrency)
        assert 30 <= level["requests"] == sum(r.phase == "steady" for r in kept.read_requests())
    assert found == run("report", "it", cwd=cwd)[1]


def test_the_highest_load_within_an_slo(server: Truth, tmp_path: Path) -> None:
    """Five users share four places, so one answer in five takes 90 ms or so: four are within 75 ms."""

    def good(found: dict[str, Any]) -> bool:
        return (4, 5) == (found["slo"]["level"], found["slo"]["missed_at"])

    words = ("-c", "4,8", "-n", "80", "--slo", "e2e_p95<75ms")
    found = sweep(four_at_once(server), *words, cwd=tmp_path, good=good)
    cwd = found.pop("cwd")

    assert good(found), found["slo"]
    assert [4, 8, 6, 5] == [level["level"] for level in found["levels"] if not level["repeated"]]
    assert "found" == found["slo"]["status"]

    shown = perfdoctor("report", "it", "--slo", "e2e_p95<10ms", cwd=cwd)
    assert (1, True) == (shown.code, "no load is within it" in shown.out), shown.err
    assert 80 >= max(map(len, shown.out.splitlines()))


def test_rates_show_what_is_kept_up_with(server: Truth, tmp_path: Path) -> None:
    """Of 160/s the server serves 80: the knee is below it."""
    words = ("--rate", "40,160", "--arrival", "constant", "-n", "60")
    found = sweep(four_at_once(server), *words, cwd=tmp_path, good=lambda found: found["knee"]["level"] == 40)

    assert ("found", 40, [40, 160]) == tuple(found["knee"][k] for k in ("status", "level", "between"))
    over = next(level for level in found["levels"] if level["level"] == 160 and not level["repeated"])
    assert 80 == pytest.approx(over["requests_per_s"], rel=0.15)
    assert 0.5 == pytest.approx(over["served_share"], rel=0.15)


def test_slow_answers_are_no_overload(server: Truth, tmp_path: Path) -> None:
    """0.7 s each, as many at once as come: most of one second are open when it ends, and all are served."""
    endpoint = server.timed(ttft_ms=200, gap_ms=100, tokens=6)
    words = ("--rate", "30,40", "--arrival", "constant", "--duration", "1s")
    found = sweep(endpoint, *words, cwd=tmp_path, good=lambda found: found["knee"]["status"] == "not_reached")

    assert "not_reached" == found["knee"]["status"], found["knee"]["reason"]
    assert all(level["served_share"] > 0.95 for level in found["levels"] if not level["repeated"])


def rows_of(folder: Path, complete: int, patience_s: float = 30.0) -> None:
    """Wait until so many levels are complete."""
    ends_s = time.monotonic() + patience_s
    while time.monotonic() < ends_s:
        if (folder / "sweep.json").exists():
            levels = json.loads((folder / "sweep.json").read_bytes())["levels"]
            if sum(level["state"] == "complete" for level in levels) >= complete:
                return
        time.sleep(0.05)
    raise AssertionError("the sweep does not get on")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_sweep_shows_what_it_has(server: Truth, tmp_path: Path, number: int) -> None:
    """After the first level, in the middle of the second; also when nothing was left to finish it."""
    tmp_path.joinpath("runs").mkdir()
    words = ("-c", "1,2,4", "-n", "20", "-o", "it")
    process = start("sweep", "--endpoint", four_at_once(server), *words, cwd=tmp_path)
    rows_of(tmp_path / "it", 1)
    while not list(tmp_path.glob("it/02-*/requests.jsonl")):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, number)
    ended = finish(process)
    again = perfdoctor("report", "it", "--json", cwd=tmp_path)
    found = json.loads(again.out)

    assert (130 if number == signal.SIGINT else -number) == ended.code
    assert ("interrupted", ["complete", "interrupted"]) == (
        found["state"],
        [level["state"] for level in found["levels"]],
    )
    assert 20 == pytest.approx(found["levels"][0]["requests_per_s"], rel=0.2)
    if number == signal.SIGINT:
        assert "interrupted: what is shown" in ended.out


def test_a_level_that_fails_is_a_row_and_the_last(tmp_path: Path) -> None:
    """The server is killed after the first level, which is shown; the next one says why, and exit 3."""
    with truth.serving() as server:
        words = ("-c", "1,2,4", "-n", "10", "-o", "it", "--json")
        process = start("sweep", "--endpoint", four_at_once(server), *words, cwd=tmp_path)
        rows_of(tmp_path / "it", 1)
    ended = finish(process)
    found = json.loads(ended.out)

    assert 3 == ended.code, ended.err
    *shown, failed = found["levels"]
    assert shown and all(level["error"] is None for level in shown)
    assert failed["error"] and found["ended"].endswith("could not be measured")
    assert 0 == perfdoctor("report", "it", cwd=tmp_path).code


def test_llamacpp_is_swept(llamacpp: Server, tmp_path: Path) -> None:
    """A real server with four slots: every answer of every level counts, and the numbers are whole."""
    words = ("-c", "1,8", "-n", "24", "--output-tokens", "12")
    found = sweep(llamacpp.url, *words, cwd=tmp_path, good=lambda found: True)

    assert {1, 8} == {level["level"] for level in found["levels"]}
    assert all((0, True) == (level["failed"], level["requests"] >= 24) for level in found["levels"])
    for level in found["levels"]:
        assert 0 < level["ttft_p50_s"] <= level["ttft_p95_s"] <= level["e2e_p95_s"]
    queued, alone = found["levels"][-1]["ttft_p50_s"], found["levels"][0]["ttft_p50_s"]
    assert queued > 2 * alone  # eight users before four slots
