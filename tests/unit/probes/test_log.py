"""A server's log that grows while it is followed."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

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
PREEMPTION = (
    "WARNING scheduler.py:1] Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode, "
    "total_num_cumulative_preemption={}\n"
)
LLAMA = (
    "slot print_timing: id  3 | task 0 | prompt eval time =      50.00 ms /    17 tokens\n"
    "slot print_timing: id  3 | task 0 |        eval time =     200.00 ms /    16 tokens\n"
    "slot print_timing: id  3 | task 0 |       total time =     250.00 ms /    33 tokens\n"
)


def read_all(reader):
    """All values of one reading of the probe, later ones over earlier ones, and those of the start."""
    readings = reader.read()
    values = {k: v for r in readings if r.probe is None for k, v in r.values.items()}
    return values, next((r.values for r in readings if r.probe == "log.start"), None)


@contextmanager
def following(file):
    """The probe's reader of a log."""
    reader = log.open_log(Subject(log=str(file)), threading.Event())
    try:
        yield reader
    finally:
        reader.close()


def write(file, text):
    """As a server appends."""
    with file.open("a") as out:
        out.write(text)


def test_only_what_is_written_during_the_run_counts(tmp_path):
    """Old lines are history, half a line waits for its end, preemptions add up from none."""
    file = tmp_path / "server.log"
    file.write_text(V0 + PREEMPTION.format(1))
    with following(file) as reader:
        nothing = reader.read()
        write(file, PREEMPTION.format(51) + PREEMPTION.format(101) + V1[:60])
        half = reader.read()
        write(file, V1[60:])
        whole, _ = read_all(reader)

    assert [{}] == [r.values for r in nothing]
    assert [0.0, 51.0] == [r.values["preemptions"] for r in half]
    assert (12, 51.0) == (whole["waiting"], whole["preemptions"])


def test_what_was_not_told_is_absent(tmp_path):
    """vLLM's version 1 engine is silent about preemptions: none is not zero."""
    file = tmp_path / "server.log"
    file.touch()
    with following(file) as reader:
        write(file, V1)
        values, start = read_all(reader)

    assert 12 == values["waiting"]
    assert "preemptions" not in values
    assert start is None


def test_times_of_ended_requests_add_up(tmp_path):
    """As llama.cpp prints them, for a server without --metrics."""
    file = tmp_path / "server.log"
    file.touch()
    with following(file) as reader:
        write(file, LLAMA * 2)
        values, _ = read_all(reader)

    assert {
        "prefill_sum_s": 0.1, "prefill_count": 2, "prompt_tokens": 34,
        "decode_sum_s": 0.4, "decode_count": 2, "output_tokens": 32,
    } == pytest.approx(values)  # fmt: skip


def test_the_start_is_told_once_and_again_when_it_changes(tmp_path):
    """What the head of the file says, and later what a model loaded during the run adds."""
    file = tmp_path / "server.log"
    file.write_text("Loading weights took 5.25 seconds\n" + V1)
    with following(file) as reader:
        first, second = read_all(reader), read_all(reader)
        write(file, 'level=INFO msg="llama runner started in 2.35 seconds"\n')
        third = read_all(reader)

    assert ({}, {"weights_s": 5.25}) == first
    assert ({}, None) == second
    assert {"weights_s": 5.25, "runner_s": 2.35} == third[1]


def test_the_head_of_a_long_log_is_enough(tmp_path, monkeypatch):
    """What stands beyond the first megabytes is not looked through for a start."""
    monkeypatch.setattr(log, "START_BYTES", 100)
    file = tmp_path / "server.log"
    file.write_text("Loading weights took 5.25 seconds\n" + "x" * 200 + "\nLoading weights took 9 seconds\n")
    with following(file) as reader:
        _, start = read_all(reader)

    assert {"weights_s": 5.25} == start


def test_a_log_that_was_cut_is_read_from_its_begin(tmp_path):
    """Rotation by copying and truncating."""
    file = tmp_path / "server.log"
    file.write_text(V0 * 5)
    with following(file) as reader:
        reader.read()
        file.write_text(V1)
        values, _ = read_all(reader)

    assert 12 == values["waiting"]


def test_a_log_that_outruns_its_reader_is_skipped_over(tmp_path, monkeypatch):
    """And says so."""
    monkeypatch.setattr(log, "AT_ONCE", 100)
    file = tmp_path / "server.log"
    file.touch()
    with following(file) as reader:
        write(file, V1 * 3)
        reader.read()
        gaps = reader.gaps
        write(file, V1)
        assert ["log"] == [gap.metric for gap in gaps]


def test_without_a_log_the_probe_is_absent():
    """Nobody named one; or it cannot be read yet."""
    with pytest.raises(Unavailable):
        log.open_log(Subject(), threading.Event())
    with pytest.raises(NotYet):
        log.open_log(Subject(log="/nonexistent/log"), threading.Event())
