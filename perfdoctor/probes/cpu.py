"""CPU time the server got, and the time it was ready to run but had to wait.

On-CPU and run-queue time of every thread of the tree (schedstat), the quota of its control group, and the
host's own business. A thread that waits for a CPU is not slow code: it is contention or a quota.
"""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from perfdoctor.probes._cgroup import Group, Quota, find_group, read_quota
from perfdoctor.probes._probe import Gap, Probe, Reading, counters, gauges
from perfdoctor.probes._procfs import (
    PSI_ENABLE,
    PSI_WHY,
    TICKS_PER_S,
    Files,
    Key,
    Tasks,
    Totals,
    parse_psi,
    parse_schedstat,
)
from perfdoctor.probes._subject import Subject

BUSIEST = 6  # threads reported of each interval
THREADS_EVERY_S = 1.0  # counters lose nothing by being reported less often
SCHEDSTAT = "cat /proc/PID/task/TID/schedstat    (ns on CPU, ns waiting, slices)"

METRICS = (
    *counters(
        "cpu",
        "head -1 /proc/stat    (ticks: user nice system idle iowait irq softirq steal)",
        {
            "host_busy_s": ("s", "CPU time used on the host, all cores, without idle, iowait and steal"),
            "host_steal_s": ("s", "CPU time that the hypervisor gave to others"),
        },
    ),
    *counters(
        "cpu",
        "cat /proc/pressure/cpu    (total, microseconds)",
        {"psi_some_s": ("s", "time with at least one runnable task of the host waiting")},
    ),
    *counters(
        "cpu",
        SCHEDSTAT,
        {
            "oncpu_s": ("s", "CPU time of all threads of the process tree"),
            "runq_wait_s": ("s", "time its threads were runnable but waited, quota waits included"),
        },
    ),
    *counters(
        "cpu",
        "cat cpu.stat    (in the folder of /sys/fs/cgroup that /proc/PID/cgroup names)",
        {
            "quota_periods": ("", "periods in which the control group ran"),
            "quota_throttled": ("", "periods in which it used up its quota"),
            "quota_throttled_s": ("s", "time its CPUs were stopped by the quota, added up"),
        },
    ),
    *gauges("cpu", "nproc --all", {"host_cores": ("cores", "cores of the host that are on line")}),
    *gauges(
        "cpu",
        "cat cpu.max    (in the folder of /sys/fs/cgroup that /proc/PID/cgroup names)",
        {"quota_cores": ("cores", "quota of the control group; null when none is set")},
    ),
    *gauges("cpu", "ps -o nlwp= -p PID", {"threads": ("", "threads of the process tree")}),
    *counters(
        "cpu.thread",
        SCHEDSTAT,
        {
            "oncpu_s": ("s", "CPU time of one of the busiest threads"),
            "runq_wait_s": ("s", "time that thread was runnable but waited"),
        },
    ),
)

Times = tuple[float, float]  # (on CPU, waiting), seconds


def parse_host(content: bytes) -> tuple[float, float]:
    """(busy, stolen) seconds of all cores from /proc/stat; idle and iowait are not busy, guest is in user."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, content.split(maxsplit=9)[1:9])
    return (user + nice + system + irq + softirq) / TICKS_PER_S, steal / TICKS_PER_S


def busiest(before: Mapping[Key, Times], now: Mapping[Key, Times], count: int = BUSIEST) -> list[Key]:
    """The threads that ran or wanted to run most since the last report; idle ones are left out."""
    wanted = {key: sum(times) - sum(before.get(key, (0.0, 0.0))) for key, times in now.items()}
    active = (key for key, seconds in wanted.items() if seconds > 0)
    return heapq.nlargest(count, active, key=lambda key: wanted[key])


class CpuReader:
    def __init__(self, subject: Subject, files: Files, now: Callable[[], float] = time.monotonic) -> None:
        self._subject, self._files, self._now = subject, files, now
        self._tasks = Tasks(files, "schedstat", parse_schedstat)
        self._totals = Totals(2)
        self._group: Group | None = None
        self._group_of: int | None = -1
        self._reported: dict[Key, str] = {}  # -> thread name
        self._before: dict[Key, Times] = {}
        self._threads_due_s = 0.0
        self._gaps: dict[str, Gap] = {}
        self._scheduled = Path("/proc/thread-self/schedstat").exists()
        if not self._scheduled:
            self._gaps["schedstat"] = Gap("oncpu_s, runq_wait_s", "the kernel keeps no schedstat")

    @property
    def gaps(self) -> Sequence[Gap]:
        return tuple(self._gaps.values())

    def read(self) -> Sequence[Reading]:
        pids = self._subject.pids()
        busy_s, steal_s = parse_host(self._files.read("/proc/stat"))
        quota = self._read_quota(pids[0] if pids else None)
        values: dict[str, float | None] = {
            "host_busy_s": busy_s,
            "host_steal_s": steal_s,
            "psi_some_s": self._read_pressure(),
            "oncpu_s": None,
            "runq_wait_s": None,
            "quota_periods": quota.periods,
            "quota_throttled": quota.throttled,
            "quota_throttled_s": quota.throttled_s,
            "host_cores": os.cpu_count(),
            "quota_cores": quota.cores,
            "threads": None,
        }
        if not pids:
            return (Reading(values, why="no living process of the server is known"),)
        if not self._scheduled:
            return (Reading(values),)
        for key in self._tasks.read(pids):
            self._totals.update(key, self._tasks.values[key])
        values["oncpu_s"], values["runq_wait_s"] = self._totals.sums
        values["threads"] = len(self._tasks.values)
        return (Reading(values), *self._thread_readings(self._tasks.values))

    def _read_quota(self, pid: int | None) -> Quota:
        if pid != self._group_of:
            self._group, self._group_of = find_group(pid, "cpu"), pid
        return read_quota(self._files, self._group) if self._group else Quota()

    def _read_pressure(self) -> float | None:
        try:
            return parse_psi(self._files.read("/proc/pressure/cpu")).get("some")
        except OSError:
            self._gaps["psi"] = Gap("psi_some_s", PSI_WHY, PSI_ENABLE)
            return None

    def _thread_readings(self, times: Mapping[Key, Times]) -> list[Reading]:
        """The busiest threads, and those reported before, so that no series breaks off."""
        if self._now() < self._threads_due_s:
            return []
        self._threads_due_s = self._now() + THREADS_EVERY_S
        for key in busiest(self._before, times):
            self._reported.setdefault(key, self._name(key))
        self._before = dict(times)
        return [
            Reading(
                {"oncpu_s": times[key][0], "runq_wait_s": times[key][1]},
                {"pid": str(key[0]), "tid": str(key[1]), "name": name},
                probe="cpu.thread",
            )
            for key, name in self._reported.items()
            if key in times
        ]

    def _name(self, key: Key) -> str:
        path = f"/proc/{key[0]}/task/{key[1]}/comm"
        try:
            name = self._files.read(path).decode(errors="replace").strip()
        except OSError:
            return ""
        self._files.drop(path)
        return name

    def close(self) -> None:
        self._files.close()


def open_cpu(subject: Subject, stop: threading.Event) -> CpuReader:
    return CpuReader(subject, Files())


PROBE = Probe(name="cpu", rate_hz=5.0, max_share=0.0025, metrics=METRICS, open=open_cpu)
