"""Flags of the load, each by what it changes in the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfdoctor import store
from tests.e2e.flags._loads import UNTRUSTED, Load, words_of
from tests.servers import truth
from tests.servers.truth_scripts import (
    CHUNKED_HEAD,
    GOOD,
    LAST_CHUNK,
    ROLE,
    TOKENS,
    chunk,
)

pytestmark = pytest.mark.server


def test_number_and_time(load: Load):
    """-n ends by number, --duration by time, both by what comes first."""
    assert 5 == load("-n", "5", "-c", "2").summary["requests"]["total"]
    assert 4 == load("-n", "4", "--duration", "1m").summary["requests"]["total"]
    assert 3 < load("-n", "100000", "--duration", "300ms").summary["requests"]["total"] < 300


def test_warm_up_is_left_out(load: Load):
    """By number and by time."""
    assert (3, 7) == ((run := load("--warmup", "2")).summary["requests"]["total"], len(run.told))
    timed = load("--warmup-time", "200ms", "-n", "3")
    assert timed.summary["requests"]["total"] < len(timed.told)


@pytest.mark.parametrize(
    ("words", "process"),
    [
        ((), "poisson"),
        (("--arrival", "constant"), "constant"),
        (("--arrival", "gamma", "--burstiness", "0.3"), "gamma"),
    ],
)
def test_arrivals(load: Load, words: tuple[str, ...], process: str):
    """Open loop at the rate, by the process asked for."""
    summary = load("--rate", "3000/min", *words, "-n", "20").summary

    assert (process, 20) == (summary["arrivals"]["process"], summary["requests"]["total"])
    assert 50.0 == pytest.approx(summary["rates"]["asked_per_s"], rel=0.5)


def test_a_ramp_ends_with_its_last_corner(load: Load):
    """Steps: about two and about eight requests."""
    summary = load("--ramp", "10/s@200ms,40/s@200ms", "--arrival", "constant").summary

    assert 8 <= summary["requests"]["total"] <= 11


def test_a_trace_is_sent_as_it_was_recorded(load: Load, tmp_path: Path):
    """Its prompts at its instants, here twice as fast."""
    rows = [{"at_s": at_s, "prompt": f"at {at_s}"} for at_s in (0, 0.2, 0.6)]
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    run = load("--replay", "trace.jsonl", "--replay-speed", "2")

    assert ["at 0", "at 0.2", "at 0.6"] == [words_of(told) for told in run.told]
    after = [(told["received_ns"] - run.told[0]["received_ns"]) / 1e9 for told in run.told]
    assert [0, 0.1, 0.3] == pytest.approx(after, abs=0.09)


def test_a_cap_on_open_requests(load: Load, server: truth.Truth):
    """What is due above it waits, is sent late, and is counted."""
    slow = server.timed(ttft_ms=100, tokens=2)

    summary = load("--rate", "40/s", "--max-in-flight", "1", "-n", "8", endpoint=slow).summary

    assert (8, 1) == (summary["requests"]["total"], summary["rates"]["in_flight_max"])
    assert summary["requests"]["late"] > 3


def test_the_same_seed_makes_the_same_arrivals(load: Load):
    """And another one other arrivals."""

    def gaps(seed: str) -> list[float]:
        run = load("--rate", "100/s", "--seed", seed, "-n", "6")
        due = sorted(r.due_s for r in store.open_run(run.path).read_requests())
        return [round(at_s - due[0], 5) for at_s in due]

    assert gaps("7") == gaps("7") != gaps("8")


def test_users_that_start_one_by_one(load: Load, server: truth.Truth):
    """Over the time given."""
    run = load("-c", "3", "-n", "3", "--ramp-up", "300ms", endpoint=server.timed(ttft_ms=400, tokens=1))

    assert (run.told[-1]["received_ns"] - run.told[0]["received_ns"]) / 1e9 >= 0.15


def test_too_many_errors_end_the_load(load: Load, server: truth.Truth):
    """Exit 1 long before the number is reached; the reason is in the result."""
    run = load("--max-error-rate", "10%", "-n", "2000", "-c", "2", endpoint=server.scripted("good+500"))

    assert run.summary["requests"]["total"] < 1000
    assert "failed" in (run.summary["stopped"] or "")
    assert run.code in (1, UNTRUSTED)


@pytest.mark.parametrize(
    "words", [("--duration", "200ms", "--drain", "100ms"), ("--deadline", "300ms", "-n", "50")]
)
def test_an_end_to_waiting(load: Load, server: truth.Truth, words: tuple[str, ...]):
    """What is open then is counted as such."""
    run = load(*words, "-c", "2", endpoint=server.timed(ttft_ms=20, gap_ms=20, tokens=400))

    assert 2 == run.summary["requests"]["censored"]


@pytest.mark.parametrize("words", [("--timeout", "150ms"), ("--idle-timeout", "100ms")])
def test_limits_of_one_request(load: Load, server: truth.Truth, words: tuple[str, ...]):
    """An answer that hangs counts as failed, by its class; the others do not."""
    server.put(
        "pauses", [CHUNKED_HEAD, chunk(ROLE), chunk(TOKENS[0]), 0.25, *map(chunk, GOOD[2:]), LAST_CHUNK]
    )

    run = load(*words, "-n", "4", endpoint=server.scripted("good+pauses"))

    requests = run.summary["requests"]
    assert 0 < requests["ok"] < 4
    assert {"timeout": 4 - requests["ok"]} == requests["failed"]


def test_several_processes(load: Load):
    """As many as asked for, shown in the run."""
    run = load("--workers", "2", "-c", "4", "-n", "12")

    assert (12, 2) == (run.summary["requests"]["total"], run.facts.client.workers)
