"""Memory of the server and pressure on it: what is resident, what was thrown out and had to come back.

Refaults are pages of files that were dropped from the cache and needed again; weights that are mapped and
do not fit make one pass over the model a pass over the disk. Major faults miss this: read-ahead hides them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from perfdoctor.probes._cgroup import Group, find_group, read_memory
from perfdoctor.probes._probe import Gap, Probe, Reading, counters, gauges
from perfdoctor.probes._procfs import (
    PAGE_BYTES,
    PSI_ENABLE,
    PSI_WHY,
    Files,
    Totals,
    parse_keys,
    parse_psi,
    parse_stat,
)
from perfdoctor.probes._subject import Subject

METRICS = (
    *gauges(
        "memory",
        "grep -E 'VmRSS|RssFile|RssAnon' /proc/PID/status    (kB)",
        {
            "rss_bytes": ("bytes", "resident memory of the tree; shared pages count once a process"),
            "rss_file_bytes": ("bytes", "of it, mapped files such as weights"),
            "rss_anon_bytes": ("bytes", "of it, memory of its own"),
        },
    ),
    *gauges(
        "memory",
        "grep MemAvailable /proc/meminfo    (kB)",
        {"host_available_bytes": ("bytes", "what new work on this host could get without swapping")},
    ),
    *gauges(
        "memory",
        "cat memory.current memory.max    (in the folder of /sys/fs/cgroup that /proc/PID/cgroup names)",
        {
            "cgroup_used_bytes": ("bytes", "memory of the control group, page cache included"),
            "cgroup_limit_bytes": ("bytes", "limit of the control group; null when none is set"),
        },
    ),
    *counters(
        "memory",
        "ps -o maj_flt= -p PID",
        {"major_faults": ("", "page faults of the tree that waited for storage")},
    ),
    *counters(
        "memory",
        "grep -E 'workingset_refault_file|pswpin' /proc/vmstat    (pages)",
        {
            "refault_file_bytes": ("bytes", "file pages dropped and needed again, whole host"),
            "swap_in_bytes": ("bytes", "memory brought back from swap, whole host"),
        },
    ),
    *counters(
        "memory",
        "cat /proc/pressure/memory    (total, microseconds)",
        {
            "psi_some_s": ("s", "time with at least one task of the host waiting for memory"),
            "psi_full_s": ("s", "time with all non-idle tasks of the host waiting for memory"),
        },
    ),
)


def parse_status(content: bytes) -> tuple[int, int, int] | None:
    """(resident, of files, anonymous) bytes of /proc/PID/status, which counts kB; None for a zombie."""
    keys = parse_keys(content, (b"VmRSS", b"RssFile", b"RssAnon"))
    if b"VmRSS" not in keys:
        return None
    return keys[b"VmRSS"] * 1024, keys.get(b"RssFile", 0) * 1024, keys.get(b"RssAnon", 0) * 1024


def parse_vmstat(content: bytes) -> tuple[float | None, float | None]:
    """(refaulted file bytes, swapped-in bytes). Kernels before 5.9 count refaults of all kinds in one."""
    keys = parse_keys(content, (b"workingset_refault_file", b"workingset_refault", b"pswpin"))
    refaults = keys.get(b"workingset_refault_file", keys.get(b"workingset_refault"))
    swapped = keys.get(b"pswpin")
    return (
        None if refaults is None else refaults * PAGE_BYTES,
        None if swapped is None else swapped * PAGE_BYTES,
    )


class MemoryReader:
    def __init__(self, subject: Subject, files: Files) -> None:
        self._subject, self._files = subject, files
        self._faults = Totals(1)
        self._group: Group | None = None
        self._group_of: int | None = -1
        self._gaps: dict[str, Gap] = {}

    @property
    def gaps(self) -> Sequence[Gap]:
        return tuple(self._gaps.values())

    def read(self) -> Sequence[Reading]:
        pids = self._subject.pids()
        values: dict[str, float | None] = dict.fromkeys((m.name for m in METRICS), None)
        self._read_host(values)
        self._read_group(pids[0] if pids else None, values)
        if not pids:
            return (Reading(values, why="no living process of the server is known"),)
        self._read_processes(pids, values)
        return (Reading(values),)

    def _read_host(self, values: dict[str, float | None]) -> None:
        available = parse_keys(self._files.read("/proc/meminfo"), (b"MemAvailable",)).get(b"MemAvailable")
        values["host_available_bytes"] = None if available is None else available * 1024
        try:
            content = self._files.read("/proc/vmstat")
        except OSError:
            self._gaps["vmstat"] = Gap("refault_file_bytes, swap_in_bytes", "the kernel has no /proc/vmstat")
        else:
            values["refault_file_bytes"], values["swap_in_bytes"] = parse_vmstat(content)
        try:
            pressure = parse_psi(self._files.read("/proc/pressure/memory"))
        except OSError:
            self._gaps["psi"] = Gap("psi", PSI_WHY, PSI_ENABLE)
        else:
            values["psi_some_s"], values["psi_full_s"] = pressure.get("some"), pressure.get("full")

    def _read_group(self, pid: int | None, values: dict[str, float | None]) -> None:
        if pid != self._group_of:
            self._group, self._group_of = find_group(pid, "memory"), pid
        if self._group:
            used, limit = read_memory(self._files, self._group)
            values["cgroup_used_bytes"], values["cgroup_limit_bytes"] = used, limit

    def _read_processes(self, pids: Sequence[int], values: dict[str, float | None]) -> None:
        resident: list[tuple[int, int, int]] = []
        for pid in pids:
            try:
                parts = parse_status(self._files.read(f"/proc/{pid}/status"))
                stat = parse_stat(self._files.read(f"/proc/{pid}/stat"))
            except OSError:  # it ended; its faults stay counted
                self._files.drop(f"/proc/{pid}/status")
                self._files.drop(f"/proc/{pid}/stat")
                continue
            self._faults.update(pid, (stat.major_faults,))
            if parts:
                resident.append(parts)
        if resident:
            sums = (sum(column) for column in zip(*resident, strict=True))
            values["rss_bytes"], values["rss_file_bytes"], values["rss_anon_bytes"] = sums
        values["major_faults"] = self._faults.sums[0]

    def close(self) -> None:
        self._files.close()


def open_memory(subject: Subject, stop: threading.Event) -> MemoryReader:
    return MemoryReader(subject, Files())


PROBE = Probe(name="memory", rate_hz=2.0, max_share=0.001, metrics=METRICS, open=open_memory)
