"""Statistics lines as the servers write them, from a file that grows."""

from __future__ import annotations

import threading

import pytest

from perfdoctor import logs
from perfdoctor.probes import log
from perfdoctor.probes._probe import NotYet, Unavailable
from perfdoctor.probes._subject import Subject

V1 = (
    "INFO 09-10 12:00:00 [loggers.py:123] Engine 000: Avg prompt throughput: 35.2 tokens/s, Avg generation "
    "throughput: 150.1 tokens/s, Running: 4 reqs, Waiting: 12 reqs, GPU KV cache usage: 85.5%, "
    "Prefix cache hit rate: 12.0%\n"
)
V0 = (
    "INFO 01-02 12:00:00 metrics.py:455] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 8.2 "
    "tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 0.3%, "
    "CPU KV cache usage: 0.0%.\n"
)
SGLANG = (
    "[2026-01-02 12:00:00] Decode batch. #running-req: 5, #token: 1234, token usage: 0.12, cuda graph: True, "
    "gen throughput (token/s): 250.10, #queue-req: 2\n"
)
PREEMPTION = "WARNING scheduler.py:1] Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (V1, (4, 12, 0.855, 150.1)),
        (V0, (1, 3, 0.003, 8.2)),
        (SGLANG, (5, 2, 0.12, 250.1)),
    ],
)
def test_numbers_of_a_statistics_line(line, expected):
    """Running, waiting, cache and pace under our names, whoever wrote them."""
    found = logs.read_statistics(line)

    names = ("running", "waiting", "kv_usage", "generation_tokens_per_s")
    assert expected == pytest.approx(tuple(found[name] for name in names))


def test_any_other_line_holds_nothing():
    """And an absent number is not zero."""
    assert {} == logs.read_statistics("INFO: 127.0.0.1 - POST /v1/chat/completions HTTP/1.1 200 OK")


def test_only_what_is_written_during_the_run_counts(tmp_path):
    """Old lines are history, half a line waits for its end, preemptions add up."""
    file = tmp_path / "server.log"
    file.write_text(V0 + PREEMPTION)
    reader = log.open_log(Subject(log=str(file)), threading.Event())

    (nothing,) = reader.read()
    with file.open("a") as out:
        out.write(PREEMPTION * 2 + V1[:60])
    (half,) = reader.read()
    with file.open("a") as out:
        out.write(V1[60:])
    (whole,) = reader.read()
    reader.close()

    assert {"preemptions": 0.0} == nothing.values
    assert {"preemptions": 2.0} == half.values
    assert (12, 2.0) == (whole.values["waiting"], whole.values["preemptions"])


def test_without_a_log_the_probe_is_absent():
    """Nobody named one; or it cannot be read yet."""
    with pytest.raises(Unavailable):
        log.open_log(Subject(), threading.Event())
    with pytest.raises(NotYet):
        log.open_log(Subject(log="/nonexistent/log"), threading.Event())
