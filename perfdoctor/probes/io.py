"""Time that tasks of the server wait for storage, and what they read.

Sees what device counters miss: a reader throttled by its control group, slow network storage, page faults of
mapped weights. PSI is system-wide and diluted by other busy CPUs; the block delay of the tasks themselves is
exact but off by default in the kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from perfdoctor.probes._probe import Gap, Probe, Reading, counters, gauges
from perfdoctor.probes._procfs import (
    PSI_ENABLE,
    PSI_WHY,
    Files,
    Tasks,
    Totals,
    parse_keys,
    parse_psi,
    parse_state,
)
from perfdoctor.probes._subject import Subject

DELAYS = "/proc/sys/kernel/task_delayacct"
PSI = "/proc/pressure/io"

METRICS = (
    *counters(
        "io",
        "cat /proc/PID/io    (read_bytes, rchar)",
        {
            "process_read_bytes": ("bytes", "what the tree had fetched from storage, page faults included"),
            "process_read_chars": (
                "bytes",
                "what the tree read by calls, from cache or storage; no mapped files",
            ),
        },
    ),
    *counters(
        "io",
        f"cat {PSI}    (total, microseconds)",
        {
            "psi_some_s": ("s", "time with at least one task of the host waiting for IO"),
            "psi_full_s": ("s", "time with all non-idle tasks of the host waiting for IO"),
        },
    ),
    *counters(
        "io",
        "cat /proc/PID/task/*/stat | awk '{s += $42} END {print s / 100}'    (names without blanks)",
        {"blkio_delay_s": ("s", "block IO delay of the tree's threads added up")},
    ),
    *gauges(
        "io",
        "ps -L -o stat= -p PID | grep -c ^D",
        {"blocked_threads": ("", "threads of the tree in uninterruptible sleep at that instant")},
    ),
    *gauges("io", "ps -o nlwp= -p PID", {"threads": ("", "threads of the process tree")}),
)


def parse_io(content: bytes) -> tuple[float, float]:
    """(bytes from storage, bytes read by calls)."""
    keys = parse_keys(content, (b"read_bytes", b"rchar"))
    return keys[b"read_bytes"], keys[b"rchar"]


class IoReader:
    def __init__(self, subject: Subject, files: Files) -> None:
        self._subject, self._files = subject, files
        self._tasks = Tasks(files, "stat", parse_state)
        self._read, self._delay = Totals(2), Totals(1)
        self._gaps: dict[str, Gap] = {}
        self._delays_kept = _flag(files, DELAYS)
        if not self._delays_kept:
            self._miss("blkio_delay_s", "kernel.task_delayacct is off", "sysctl -w kernel.task_delayacct=1")

    @property
    def gaps(self) -> Sequence[Gap]:
        return tuple(self._gaps.values())

    def _miss(self, metric: str, why: str, enable: str | None = None) -> None:
        self._gaps[metric] = Gap(metric, why, enable)

    def read(self) -> Sequence[Reading]:
        values: dict[str, float | None] = dict.fromkeys((m.name for m in METRICS), None)
        self._read_pressure(values)
        pids = self._subject.pids()
        if not pids:
            return (Reading(values, why="no living process of the server is known"),)
        self._read_processes(pids, values)
        self._read_tasks(pids, values)
        return (Reading(values),)

    def _read_pressure(self, values: dict[str, float | None]) -> None:
        try:
            pressure = parse_psi(self._files.read(PSI))
        except OSError:
            self._miss("psi", PSI_WHY, PSI_ENABLE)
            return
        values["psi_some_s"], values["psi_full_s"] = pressure.get("some"), pressure.get("full")

    def _read_processes(self, pids: Sequence[int], values: dict[str, float | None]) -> None:
        for pid in pids:
            try:
                self._read.update(pid, parse_io(self._files.read(f"/proc/{pid}/io")))
            except PermissionError:
                self._miss(
                    "process_read_bytes",
                    f"/proc/{pid}/io is denied",
                    "run perfdoctor as the server's user or root",
                )
                return
            except OSError:
                self._files.drop(f"/proc/{pid}/io")  # it ended; its total stays
        values["process_read_bytes"], values["process_read_chars"] = self._read.sums

    def _read_tasks(self, pids: tuple[int, ...], values: dict[str, float | None]) -> None:
        changed = self._tasks.read(pids)
        states = self._tasks.values
        values["threads"] = len(states)
        values["blocked_threads"] = sum(state == "D" for state, _ in states.values())
        if self._delays_kept:
            for key in changed:
                self._delay.update(key, states[key][1:])
            values["blkio_delay_s"] = self._delay.sums[0]

    def close(self) -> None:
        self._files.close()


def _flag(files: Files, path: str) -> bool:
    try:
        return files.read(path).strip() == b"1"
    except OSError:
        return False


def open_io(subject: Subject, stop: threading.Event) -> IoReader:
    return IoReader(subject, Files())


PROBE = Probe(name="io", rate_hz=5.0, max_share=0.0015, metrics=METRICS, open=open_io)
