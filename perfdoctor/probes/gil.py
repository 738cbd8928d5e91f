"""Who holds Python's global lock, from short py-spy windows on the busiest Python process.

The share is over the samples that were due, so a lock nobody holds reads 0. A single hot thread at 100 % is
no contention; a second thread that holds the lock while the serving one has work is. Native code that
released the lock does not show here.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, gauges
from perfdoctor.probes._procfs import parse_stat
from perfdoctor.probes._pyspy import NotPython, Window, find_py_spy, record_gil
from perfdoctor.probes._subject import Subject

WINDOW_S = 3.0
FIRST_WINDOW_S = 1.0  # before the load: the run waits for it
PERIOD_S = 10.0  # any 13 s of a run hold a whole window
MIN_AGE_S = 1.0  # py-spy finds no interpreter in a process that is just starting
MAX_REFUSALS = 3  # then a process is taken for one without an interpreter
NEAR_BUSIEST = 0.5  # processes with half the CPU of the busiest take turns with it
CHECK = "py-spy record --gil --nonblocking -t -r 20 -d 3 -f raw -o /dev/stdout --pid PID"

METRICS = (
    *gauges(
        "gil",
        CHECK,
        {
            "held_share": ("share", "samples in which a thread held the lock, of those due"),
            "other_share": (
                "share",
                "the same of threads that do not run the model; null when no thread was seen to run one",
            ),
            "samples": ("", "samples in which a thread held the lock"),
            "errors": ("", "samples that could not be taken; they count as not held"),
            "window_s": ("s", "length of the window, which ends at the sample's instant"),
        },
    ),
    *gauges(
        "gil.thread",
        CHECK,
        {"held_share": ("share", "samples in which threads of that name held the lock, of those due")},
    ),
)


def looks_python(executable: str, maps: str) -> bool:
    """An interpreter by its name, or one inside another program by its library."""
    return Path(executable).name.startswith(("python", "pypy")) or "libpython" in maps


def choose(used_s: Mapping[int, float], sampled: Mapping[int, float]) -> int | None:
    """Of the processes near the busiest, the one not sampled for the longest time.

    `used_s` is the CPU time since the last choice, `sampled` the instant of each one's last window.
    """
    top = max(used_s.values(), default=0.0)
    near = [pid for pid, seconds in used_s.items() if seconds >= top * NEAR_BUSIEST]
    return min(near, key=lambda pid: (sampled.get(pid, -1.0), -used_s[pid]), default=None)


def readings_of(pid: int, window: Window, window_s: float) -> list[Reading]:
    """The process, then each thread name that held the lock. Over-long counts of a torn sample are capped."""

    def share(samples: int) -> float:
        return min(1.0, samples / window.due)

    labels = {"pid": str(pid)}
    values: dict[str, float | None] = {
        "held_share": share(window.samples),
        "other_share": None if window.others is None else share(window.others),
        "samples": window.samples,
        "errors": window.errors,
        "window_s": window_s,
    }
    whole = Reading(values, labels, stacks=window.stacks, cost_s=window.cost_s)
    threads = [
        Reading({"held_share": share(count)}, {**labels, "thread": name}, probe="gil.thread")
        for name, count in window.by_thread.items()
    ]
    return [whole, *threads]


class GilReader:
    def __init__(self, subject: Subject, stop: threading.Event, py_spy: str) -> None:
        self._subject, self._stop, self._py_spy = subject, stop, py_spy
        self._refusals: dict[int, int] = {}
        self._cpu_s: dict[int, float] = {}
        self._sampled: dict[int, float] = {}
        self.gaps: Sequence[Gap] = ()

    def read(self) -> Sequence[Reading]:
        pid = self._choose()
        window_s = WINDOW_S if self._sampled else FIRST_WINDOW_S
        try:
            window = record_gil(self._py_spy, pid, window_s, self._stop)
        except NotPython as error:
            self._refusals[pid] = self._refusals.get(pid, 0) + 1
            raise NotYet("unsupported", f"process {pid} holds no Python interpreter") from error
        if window is None:
            return ()
        self._sampled[pid] = time.monotonic()
        return readings_of(pid, window, window_s)

    def _choose(self) -> int:
        if self._stop.is_set():
            raise NotYet("absent", "the run ended before the first window")
        pids = self._subject.pids()
        if not pids:
            raise NotYet("absent", "no living process of the server is known")
        pid = choose(self._used(pids), self._sampled)
        if pid is None:
            raise NotYet(
                "unsupported", "no process of the server holds a Python interpreter, so there is no GIL"
            )
        return pid

    def _used(self, pids: Sequence[int]) -> dict[int, float]:
        """CPU seconds since the last choice of the Python processes that are old enough."""
        up_s = float(Path("/proc/uptime").read_text().split()[0])
        used_s: dict[int, float] = {}
        for pid in pids:
            try:
                stat = parse_stat(Path(f"/proc/{pid}/stat").read_bytes())
            except OSError:
                continue
            if up_s - stat.started_s < MIN_AGE_S:
                raise NotYet("absent", f"process {pid} is just starting")
            if self._refusals.get(pid, 0) < MAX_REFUSALS and is_python(pid):
                used_s[pid] = stat.cpu_s - self._cpu_s.get(pid, 0.0)
                self._cpu_s[pid] = stat.cpu_s
        return used_s

    def close(self) -> None:
        """A window in progress ends with the stop event."""


def is_python(pid: int) -> bool:
    """A process that may not be inspected counts as Python: py-spy then says what is denied."""
    try:
        executable = os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 - kernel link, text wanted
        return looks_python(executable, "") or looks_python(executable, Path(f"/proc/{pid}/maps").read_text())
    except PermissionError:
        return True
    except OSError:
        return False


def open_gil(subject: Subject, stop: threading.Event) -> GilReader:
    return GilReader(subject, stop, find_py_spy())


PROBE = Probe(name="gil", rate_hz=1 / PERIOD_S, max_share=0.004, metrics=METRICS, open=open_gil)
