"""CPU time, waiting and quota of a process tree."""

from __future__ import annotations

import os
import threading

from perfdoctor.probes import cpu
from perfdoctor.probes._procfs import TICKS_PER_S, Files
from perfdoctor.probes._subject import Subject


def test_idle_iowait_and_steal_are_not_busy():
    """user nice system + irq softirq; guest is part of user."""
    busy_s, steal_s = cpu.parse_host(b"cpu  100 10 50 9999 888 5 5 70 40 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")

    assert (170 / TICKS_PER_S, 70 / TICKS_PER_S) == (busy_s, steal_s)


def test_threads_that_wait_count_as_much_as_those_that_run():
    """A starved thread is what one looks for; an idle one is left out."""
    before = {(1, 1): (5.0, 0.0), (1, 2): (5.0, 5.0), (1, 3): (9.0, 9.0)}
    now = {(1, 1): (5.5, 0.0), (1, 2): (5.0, 6.0), (1, 3): (9.0, 9.0), (1, 4): (0.1, 0.0)}

    assert [(1, 2), (1, 1), (1, 4)] == cpu.busiest(before, now)
    assert [(1, 2)] == cpu.busiest(before, now, count=1)


def test_a_busy_thread_is_reported_by_name_and_stays_reported():
    """Once among the busiest, its series does not break off."""
    now_s = [0.0]
    reader = cpu.CpuReader(Subject(pid=os.getpid()), Files(), lambda: now_s[0])
    reader.read()
    sum(range(1_000_000))

    now_s[0] = 2.0
    first = [r for r in reader.read() if r.probe == "cpu.thread"]
    now_s[0] = 4.0
    second = [r for r in reader.read() if r.probe == "cpu.thread"]
    reader.close()

    me = str(threading.get_native_id())
    assert me in {r.labels["tid"] for r in first}
    assert {r.labels["tid"] for r in first} <= {r.labels["tid"] for r in second}
    assert all(r.labels["name"] for r in first)


def test_threads_are_reported_once_a_second():
    """The counters lose nothing, the folder stays small."""
    now_s = [0.0]
    reader = cpu.CpuReader(Subject(pid=os.getpid()), Files(), lambda: now_s[0])
    reader.read()

    now_s[0] = 0.9
    readings = reader.read()
    reader.close()

    assert [None] == [r.probe for r in readings]


def test_the_trees_cpu_time_grows_with_its_work():
    """Against this process's own clock."""
    reader = cpu.CpuReader(Subject(pid=os.getpid()), Files())
    before_s, used_before_s = reader.read()[0].values["oncpu_s"], sum(os.times()[:2])
    while sum(os.times()[:2]) - used_before_s < 0.1:
        sum(range(10_000))

    after_s = reader.read()[0].values["oncpu_s"]
    reader.close()

    assert before_s is not None
    assert after_s is not None
    assert after_s - before_s > 0.05


def test_before_the_server_runs_the_host_is_read_alone():
    """The tree's numbers are None with the reason."""
    reader = cpu.CpuReader(Subject(), Files())

    reading = reader.read()[0]
    reader.close()

    assert (os.cpu_count(), None, None) == tuple(
        reading.values[name] for name in ("host_cores", "oncpu_s", "threads")
    )
    assert "no living process" in (reading.why or "")
