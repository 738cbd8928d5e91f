"""Parsers of kernel files, kept descriptors, and sums over owners that come and go."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from perfdoctor.probes._procfs import (
    TICKS_PER_S,
    Files,
    Tasks,
    Totals,
    parse_keys,
    parse_psi,
    parse_schedstat,
    parse_stat,
    parse_state,
)

STAT = (
    b"4242 (a) weird (name) D 1 4242 4242 0 -1 4194304 1501 0 17 0 250 50 0 0 20 0 9 0 123400 0 0 "
    b"18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 270 0 0 0 0 0 0 0 0 0 0"
)


def test_stat_fields_are_counted_behind_the_name():
    """A command may hold brackets and blanks."""
    stat = parse_stat(STAT)

    assert 17 == stat.major_faults
    assert 300 / TICKS_PER_S == stat.cpu_s
    assert 123400 / TICKS_PER_S == stat.started_s


def test_state_and_block_delay_come_from_one_line():
    """Field 3 is the state, field 42 the delay in ticks."""
    assert ("D", 270 / TICKS_PER_S) == parse_state(STAT)


def test_schedstat_is_nanoseconds():
    """2.5 s on a CPU, 0.5 s waiting for one."""
    assert (2.5, 0.5) == parse_schedstat(b"2500000000 500000000 17\n")


def test_pressure_is_read_from_the_exact_totals():
    """Microseconds; an absent `full` line is absent, not zero."""
    text = b"some avg10=1.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 total=250000\n"

    assert {"some": 1.5, "full": 0.25} == parse_psi(text)
    assert {"some": 1.5} == parse_psi(text.splitlines()[0])


def test_keys_that_are_absent_are_left_out():
    """`name value` and `name: value kB` alike."""
    assert {b"pswpin": 3} == parse_keys(b"nr 1\npswpin 3\n", (b"pswpin", b"missing"))
    assert {b"VmRSS": 120} == parse_keys(b"VmRSS:\t 120 kB\nVmSwap: 0 kB\n", (b"VmRSS",))


def test_a_dead_owner_stays_counted():
    """The sum of counters never falls when a thread ends."""
    totals = Totals(1)
    totals.update("a", (5.0,))
    totals.update("b", (2.0,))

    totals.update("b", (3.0,))

    assert (8.0,) == totals.sums


def test_a_reused_id_counts_from_zero():
    """A value below the last one belongs to somebody new."""
    totals = Totals(1)
    totals.update("a", (5.0,))

    totals.update("a", (1.0,))

    assert (6.0,) == totals.sums


def test_a_sum_of_nothing_is_missing():
    """Not zero: no owner was ever read."""
    assert (None, None) == Totals(2).sums


def test_a_kept_file_is_read_afresh(tmp_path):
    """The descriptor is kept, the content is not."""
    path = tmp_path / "counter"
    path.write_text("1")
    files = Files()
    before = files.read(str(path))

    path.write_text("2")

    assert (b"1", b"2") == (before, files.read(str(path)))
    files.close()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_more_descriptors_are_kept_than_allowed(tmp_path):
    """The rest is opened anew each time, so a server with a thousand threads takes none from the client."""
    for name in "abc":
        (tmp_path / name).write_text(name)
    files = Files(max_open=2)
    before = open_descriptors()

    contents = [files.read(str(tmp_path / name)) for name in "abcabc"]

    assert [b"a", b"b", b"c"] * 2 == contents
    assert 2 == open_descriptors() - before
    files.close()
    assert before == open_descriptors()


def test_threads_that_start_and_end_are_followed():
    """A new thread appears once the list is due, an ended one is dropped."""
    now_s = [0.0]
    tasks = Tasks(Files(), "schedstat", parse_schedstat, lambda: now_s[0])
    pids = (os.getpid(),)
    tasks.read(pids)
    before = set(tasks.values)
    leave = threading.Event()
    thread = threading.Thread(target=leave.wait)
    thread.start()
    key = (os.getpid(), thread.native_id)

    now_s[0] = 0.5
    tasks.read(pids)
    too_early = key in tasks.values
    now_s[0] = 1.5
    tasks.read(pids)
    seen = key in tasks.values
    leave.set()
    thread.join()
    while Path(f"/proc/self/task/{thread.native_id}").exists():
        time.sleep(0.001)  # joined is not yet gone: the kernel lists it a moment longer
    now_s[0] = 3.0
    tasks.read(pids)

    assert (False, True, False) == (too_early, seen, key in tasks.values)
    assert (os.getpid(), os.getpid()) in before


def test_an_idle_thread_is_not_parsed_again():
    """Its file did not change, so it is not among the changed ones."""
    leave = threading.Event()
    thread = threading.Thread(target=leave.wait)
    thread.start()
    tasks = Tasks(Files(), "schedstat", parse_schedstat, lambda: 0.0)
    first = tasks.read((os.getpid(),))

    second = tasks.read((os.getpid(),))

    leave.set()
    thread.join()
    key = (os.getpid(), thread.native_id)
    assert (True, False) == (key in first, key in second)


def test_a_process_that_is_gone_has_no_threads():
    """No error: it ended between two looks."""
    tasks = Tasks(Files(), "stat", parse_state)

    assert [] == tasks.read((2**22 - 1,))


@pytest.mark.parametrize("content", [b"", b"no pressure here"])
def test_pressure_without_totals_is_empty(content):
    """A kernel that keeps none."""
    assert {} == parse_psi(content)
