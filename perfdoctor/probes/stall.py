"""Who blocks the server: a stack of its main thread while a question that costs nothing is unanswered.

Asks as the health probe does, but waits only a moment; when that is over, py-spy looks at once. A blocked
event loop then shows the very line that blocks it. At most one look in two seconds, and a dozen in a run.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Sequence

from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable, gauges
from perfdoctor.probes._pyspy import explain_failure, find_py_spy
from perfdoctor.probes._subject import Subject
from perfdoctor.probes.gil import is_python
from perfdoctor.probes.health import HealthReader

SILENT_S = 0.15  # guess: a free front end answers in a few milliseconds
AGAIN_S = 2.0
MOST = 12
FRAMES = 3  # from the innermost
LIMIT_S = 5.0  # of one py-spy dump
METRICS = gauges(
    "stall",
    "py-spy dump --nonblocking --pid PID, while curl URL/health waits",
    {"waited_s": ("s", "for how long the question had been unanswered when the label's stack was taken")},
)
_THREAD = re.compile(r'^Thread .*?(?:: )?"([^"]*)"')
_FRAME = re.compile(r"^\s+(\S.*) \((.*)\)$")


def main_stack(dump: str) -> tuple[str, ...]:
    """Innermost frames of the main thread, `function (file:line)`; empty when the dump has no such thread."""
    frames: list[str] = []
    inside = False
    for line in dump.splitlines():
        thread = _THREAD.match(line)
        if thread:
            inside = thread[1] == "MainThread"
        elif inside and (frame := _FRAME.match(line)):
            frames.append(f"{frame[1]} ({frame[2].rpartition('/')[2]})")
    return tuple(frames[:FRAMES])


class StallReader:
    def __init__(self, subject: Subject, py_spy: str) -> None:
        self._subject, self._py_spy = subject, py_spy
        self._health = HealthReader(subject, timeout_s=SILENT_S)
        self._looks = 0
        self._due_s = 0.0
        self.gaps: Sequence[Gap] = ()

    def read(self) -> Sequence[Reading]:
        """Nothing while the server answers."""
        pid = self._pid()
        start_s = time.monotonic()
        (asked,) = self._health.read()
        if asked.why is None or self._looks >= MOST or start_s < self._due_s:
            return ()
        self._looks += 1
        self._due_s = start_s + AGAIN_S
        waited_s = time.monotonic() - start_s
        frames = main_stack(self._dump(pid))
        return (Reading({"waited_s": waited_s}, {"stack": " < ".join(frames)}),) if frames else ()

    def _pid(self) -> int:
        pid = next((pid for pid in self._subject.pids() if is_python(pid)), None)
        if pid is None:
            raise NotYet("unsupported", "no process of the server holds a Python interpreter")
        return pid

    def _dump(self, pid: int) -> str:
        done = subprocess.run(
            [self._py_spy, "dump", "--nonblocking", "--pid", str(pid)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            raise explain_failure(done.stderr)
        return done.stdout

    def close(self) -> None:
        self._health.close()


def open_stall(subject: Subject, stop: threading.Event) -> StallReader:
    if subject.remote:
        raise Unavailable("unsupported", "the server runs on another host")
    return StallReader(subject, find_py_spy())


PROBE = Probe(name="stall", rate_hz=2.0, max_share=0.003, metrics=METRICS, open=open_stall, max_hz=2.0)
