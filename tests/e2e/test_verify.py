"""`perfdoctor verify` on real processes: servers of a known pace that can be made to fail; the tiny model."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest

from perfdoctor.reports import _schemas
from tests.e2e.test_cli_failures import Ended, finish, perfdoctor, start
from tests.servers._server import free_port

pytestmark = [pytest.mark.server, pytest.mark.alone]
QUICK = ("--pairs", "5", "--duration", "400ms")
OWN = f"{shlex.quote(sys.executable)} -m tests.servers.steady --port"
STEADY = f"{OWN} {{port}}"
TRIES = 3  # this machine has other work: an effect of a quarter may drown in it


def verify(*words: str, cwd: Path) -> Ended:
    return perfdoctor("verify", *words, "-o", "it", cwd=cwd)


def sides(before: str, after: str) -> tuple[str, ...]:
    return ("--before", before, "--after", after, *QUICK)


def result(ended: Ended) -> dict[str, Any]:
    found = json.loads(ended.out)
    jsonschema.validate(found, json.loads(_schemas.generate()["verification.schema.json"]))
    return dict(found)


def tried(before: str, after: str, verdict: str, cwd: Path, *words: str) -> dict[str, Any]:
    """The first verification with that verdict, or the last."""
    for attempt in range(TRIES):
        ended = verify(*sides(before, after), *words, "--json", cwd=made(cwd / str(attempt)))
        assert 0 == ended.code, ended.err
        found = result(ended) | {"cwd": cwd / str(attempt)}
        if found["verdict"] == verdict:
            break
    return found


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def steady_left() -> list[int]:
    """Servers of this test that are still there; those of other tests running now have other parents."""
    mine = psutil.Process().children(recursive=True)
    return [p.pid for p in mine if p.is_running() and "tests.servers.steady" in " ".join(p.cmdline())]


def test_faster_tokens_help(tmp_path: Path) -> None:
    """4 ms from token to token instead of 6, the same answers: about 1.5 times as fast, by every account."""
    before = f"{STEADY} --gap-ms 6 --loading-s 1.5"
    found = tried(before, f"{STEADY} --gap-ms 4", "helps", tmp_path)

    assert ("helps", "helps", "complete") == (found["verdict"], found["effect"], found["state"])
    assert 1.5 == pytest.approx(found["ratio"], rel=0.15)
    assert found["interval"][0] <= found["ratio"] <= found["interval"][1]
    assert (6, 0, None) == tuple(found["outputs"][k] for k in ("prompts", "differ", "missing"))
    counted = [run for run in found["runs"] if run["pair"] and not run["left_out"]]
    assert 10 <= len(counted)  # a run that cannot be trusted is made again, with its pair
    metrics = {row["metric"]: row for row in found["compared"]["metrics"]}
    assert ("pairs", "better") == (found["compared"]["over"], metrics["tpot_p50"]["verdict"])
    assert 1.5 <= found["before"]["start_s"]  # it listened, and said that it was not ready
    assert 0 < found["after"]["first_answer_s"] < 1
    again = perfdoctor("report", "it", "--json", cwd=found["cwd"])
    assert {k: v for k, v in found.items() if k != "cwd"} == json.loads(again.out)
    table = perfdoctor("report", "it", cwd=found["cwd"])
    assert "Verdict   helps: 1." in table.out
    assert 80 >= max(map(len, table.out.splitlines()))
    compared = perfdoctor("compare", "it/before", "it/after", cwd=found["cwd"])
    assert (0, True) == (compared.code, "tpot_p50" in compared.out), compared.err


def test_equal_sides_have_no_effect(tmp_path: Path) -> None:
    """The noise is told, and the exit code is 0."""
    found = tried(STEADY, STEADY, "no_effect", tmp_path)

    assert ("no_effect", True) == (found["verdict"], "no significant change" in found["reason"])
    assert found["noise"] > 1


def test_other_answers_are_told_of_first(tmp_path: Path) -> None:
    """From the fourth token on, in all six, and twelve tokens instead of eight: a token takes as long, so the
    speed is the same, and that the work is not is said."""
    found = tried(STEADY, f"{STEADY} --differ-from 3 --tokens 12", "changes_output", tmp_path)

    assert "changes_output" == found["verdict"]
    assert (6, 3, 6) == tuple(found["outputs"][k] for k in ("differ", "first", "prompts"))
    assert 1.0 == pytest.approx(found["ratio"], rel=0.1)
    assert any("8 tokens before and 12 after" in note for note in found["compared"]["notes"])
    assert any(row["per_token"] for row in found["compared"]["metrics"])


@pytest.mark.parametrize(
    ("after", "words", "phrases"),
    [
        (
            f"{STEADY} --never",
            ("--ready-timeout", "2s"),
            ("did not answer within 2 s", "steady: starting with"),
        ),
        (f"{STEADY} --oom", (), ("not enough memory for the after side", "CUDA out of memory")),
        (
            f"{STEADY} --tokens many",
            (),
            ("ended before it answered (exit code 2)", "int value: 'many'"),
        ),
        (f"{STEADY} --dies-after 60", (), ("the after side died", "a last word before it dies")),
    ],
)
def test_a_side_that_fails_is_named_with_its_last_words(
    tmp_path: Path, after: str, words: tuple[str, ...], phrases: tuple[str, ...]
) -> None:
    """Exit 3, three lines, nothing left running; the folder says it too, and keeps what was measured."""
    ended = verify(*sides(f"{STEADY}", after), *words, cwd=tmp_path)

    assert (3, "") == (ended.code, ended.out)
    assert all(phrase in ended.err for phrase in phrases), ended.err
    assert [] == steady_left()
    kept = json.loads((tmp_path / "it" / "verify.json").read_bytes())
    assert ("failed", True) == (kept["state"], phrases[0][:12] in (kept["error"] or ""))
    shown = perfdoctor("report", "it", cwd=tmp_path)
    assert (0, True) == (shown.code, "Verdict   not judged" in shown.out), shown.err


@pytest.mark.parametrize("why", ["memory", "port"])
def test_sides_that_cannot_both_be_up_are_tried_in_turn(tmp_path: Path, why: str) -> None:
    """There is room for one, or one port for both: the other is stopped first, and the verdict stands."""
    room = f"--room {tmp_path / 'room'}"
    both = (f"{STEADY} {room}",) * 2 if why == "memory" else (f"{OWN} {free_port()}",) * 2

    found = tried(f"{both[0]} --gap-ms 6", f"{both[1]} --gap-ms 3", "helps", tmp_path)

    assert "helps" == found["verdict"]
    assert (why == "memory") == any("memory does not hold both" in note for note in found["notes"])
    assert [] == steady_left()


def test_endpoints_that_are_up(tmp_path: Path) -> None:
    """Nothing is started, nothing is stopped."""
    with start_steady("--gap-ms", "6") as one, start_steady("--gap-ms", "3") as other:
        words = ("--endpoint-before", one, "--endpoint-after", other, *QUICK, "--json")
        found = result(verify("mine", *words, cwd=tmp_path))
        assert 2 == len(steady_left())

    assert ("mine", "steady", one, None) == (
        found["fix"],
        found["model"],
        found["before"]["endpoint"],
        found["before"]["start_s"],
    )
    assert 1.9 == pytest.approx(found["ratio"], rel=0.2)


class start_steady:  # noqa: N801 - reads as what it does
    """A server of ours, up while the block runs; its URL."""

    def __init__(self, *flags: str) -> None:
        self.port, self.flags = free_port(), flags

    def __enter__(self) -> str:
        import subprocess
        from urllib.request import urlopen

        words = [*shlex.split(OWN), str(self.port), *self.flags]
        self.child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        url, ends_s = f"http://127.0.0.1:{self.port}", time.monotonic() + 30
        while time.monotonic() < ends_s:
            try:
                urlopen(f"{url}/v1/models", timeout=5).close()
            except OSError:
                time.sleep(0.05)
            else:
                return url
        raise AssertionError("it does not come up")

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.wait()


def test_a_real_engine_is_asked_and_driven(tmp_path: Path) -> None:
    """llama.cpp with one place and with four: the same greedy answers, and a ledger with its queue. On a
    busy machine too few runs may count to judge it."""
    own = f"{shlex.quote(sys.executable)} -m tests.servers.llamacpp --port {{port}} --slots"
    ended = verify("raise-parallel-slots", *sides(f"{own} 1", f"{own} 4"), "-c", "4", "--json", cwd=tmp_path)

    assert ended.code in (0, 4), ended.err
    found = result(ended)
    assert (6, 0, None) == tuple(found["outputs"][k] for k in ("prompts", "differ", "missing"))
    assert found["verdict"] in ("helps", "no_effect", "not_judged")
    assert found["bound"] and "server_queue" in found["bound_source"]


def test_a_key_in_a_command_is_written_nowhere(tmp_path: Path) -> None:
    """Neither in the record, nor in the log of a server that prints its arguments, nor in an error."""
    key = "sk-live-abcdefgh12345678"
    ended = verify(*sides(f"{STEADY} --api-key {key}", f"{STEADY} --oom --api-key={key}"), cwd=tmp_path)

    assert 3 == ended.code
    assert key not in ended.err + ended.out
    files = [path for path in (tmp_path / "it").rglob("*") if path.is_file()]
    assert {"before.log", "verify.json"} <= {path.name for path in files}
    assert [] == [path for path in files if key.encode() in path.read_bytes()]


def test_an_interrupted_verification_stops_its_servers(tmp_path: Path) -> None:
    """In the middle of the runs: exit 130, both processes gone, what was measured shown."""
    process = start("verify", *sides(STEADY, STEADY), "-o", "it", cwd=tmp_path)
    ends_s = time.monotonic() + 90
    while not list(tmp_path.glob("it/*/03/requests.jsonl")) and time.monotonic() < ends_s:
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    ended = finish(process)

    assert 130 == ended.code, ended.err
    assert "State     interrupted" in ended.out
    assert [] == steady_left()
    assert "interrupted" == json.loads(perfdoctor("report", "it", "--json", cwd=tmp_path).out)["state"]


def test_a_fix_of_the_local_model(tmp_path: Path) -> None:
    """bfloat16 on the tiny model: both sides are its child, each with a ledger of its own and a bound."""
    ended = verify("load-in-bfloat16", "--model", "tiny", *QUICK, "--json", cwd=tmp_path)

    assert 0 == ended.code, ended.err
    found = result(ended)
    assert ({"dtype": "float32"}, {"dtype": "bfloat16"}) == tuple(
        found[s]["settings"] for s in ("before", "after")
    )
    assert "not_judged" != found["verdict"]
    assert found["bound"] and 1 <= found["bound"][0] <= found["bound"][1]
    rows = {row["row"] for row in found["compared"]["ledger_before"]}
    assert "decode.memory" in rows
    assert found["after"]["bottleneck"]
    assert "torch" in found["versions"]
    assert not any(row["per_token"] for row in found["compared"]["metrics"])  # every answer runs to its limit
