"""Running py-spy for one short window, and reading what it wrote."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from perfdoctor.probes._probe import Unavailable

RATE_HZ = 20  # 100 Hz cost a vLLM worker a third of its throughput, 20 Hz none that could be seen
GRACE_S = 10.0  # attaching to a big process takes seconds on a loaded machine
POLL_S = 0.1
# In a stack, one of these means that its thread runs the model: the forward pass of any torch model goes
# through its module calls, a compiled or captured one through the others.
MODEL_FRAMES = ("torch/nn/modules/", "torch/_inductor/", "torch/_dynamo/", "torch/cuda/graphs")
YAMA = "/proc/sys/kernel/yama/ptrace_scope"


@dataclass(frozen=True, slots=True)
class Window:
    """GIL samples by thread out of `due` ones; at most one thread holds the GIL, so they add up."""

    due: int
    errors: int
    stacks: str
    by_thread: dict[str, int] = field(default_factory=dict)
    cost_s: float = 0.0  # CPU time of py-spy
    model_threads: frozenset[str] = frozenset()  # those of by_thread that were seen to run the model

    @property
    def samples(self) -> int:
        return sum(self.by_thread.values())

    @property
    def others(self) -> int | None:
        """Samples in which a thread that does not run the model had the lock; None when none was seen to."""
        if not self.model_threads:
            return None
        return sum(n for name, n in self.by_thread.items() if name not in self.model_threads)


class NotPython(Exception):
    """py-spy finds no interpreter in that process."""


def find_py_spy() -> str:
    """The console script beside this interpreter, else one on PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise Unavailable("absent", "py-spy is not installed", f"{sys.executable} -m pip install py-spy")
    return found


def parse_raw(text: str) -> dict[str, int]:
    """Samples by thread name from collapsed stacks `thread (ID): NAME;frame;... COUNT`."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        name = _thread_of(stack)
        if count.isdigit():
            counts[name] = counts.get(name, 0) + int(count)
    return counts


def find_model_threads(text: str) -> frozenset[str]:
    """Names of the threads that were seen in a model's forward pass."""
    lines = [line for line in text.splitlines() if any(mark in line for mark in MODEL_FRAMES)]
    return frozenset(_thread_of(line.rpartition(" ")[0]) for line in lines)


def _thread_of(stack: str) -> str:
    thread = stack.partition(";")[0]
    match = re.fullmatch(r"thread \(([^)]*)\)(?:: (.*))?", thread)
    return (match.group(2) or f"thread {match.group(1)}") if match else thread


def parse_errors(output: str) -> int:
    """Samples that py-spy could not take, from its last lines."""
    match = re.search(r"Errors: (\d+)", output)
    return int(match.group(1)) if match else 0


def explain_failure(output: str) -> Exception:
    """What a failed py-spy means for the probe. An unknown message is an error of this reading only."""
    if re.search(r"permission denied|operation not permitted", output, re.IGNORECASE):
        return Unavailable("denied", "reading another process's memory is not permitted", how_to_permit())
    if "Failed to find python version" in output or "Bad address" in output:
        return NotPython(output)
    lines = [line for line in output.splitlines() if line.strip()]
    return RuntimeError(f"py-spy failed: {lines[-1] if lines else 'it said nothing'}")


def how_to_permit(yama: str = YAMA, dockerenv: str = "/.dockerenv") -> str:
    """The least change that lets py-spy work here."""
    if Path(dockerenv).exists():
        return "start the container with --cap-add SYS_PTRACE"
    try:
        restricted = Path(yama).read_text().strip() != "0"
    except OSError:
        restricted = False
    return "sudo sysctl kernel.yama.ptrace_scope=0" if restricted else "run perfdoctor as root"


def record_gil(py_spy: str, pid: int, window_s: float, stop: threading.Event) -> Window | None:
    """One window on one process; None when the run ended meanwhile.

    py-spy takes a fixed number of samples, rate x duration, at random distances, so the share over those due
    is exact even if the window gets a little longer. Its own session keeps it out of reach of Ctrl-C.
    """
    with tempfile.TemporaryDirectory(prefix="perfdoctor-") as folder:
        raw, log = Path(folder, "raw"), Path(folder, "log")
        arguments = ["--gil", "--nonblocking", "--threads", "--format", "raw", "--output", str(raw)]
        limits = ["--rate", str(RATE_HZ), "--duration", f"{window_s:g}", "--pid", str(pid)]
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [*_dying_with_us(), py_spy, "record", *arguments, *limits],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        cost_s = _wait(process, window_s, stop)
        if cost_s is None:
            return None
        output = log.read_text(errors="replace")
        if process.returncode != 0:
            raise explain_failure(output)
        stacks = raw.read_text(errors="replace") if raw.exists() else ""
    return Window(
        due=round(RATE_HZ * window_s),
        errors=parse_errors(output),
        stacks=stacks,
        by_thread=parse_raw(stacks),
        cost_s=cost_s,
        model_threads=find_model_threads(stacks),
    )


@functools.cache
def _dying_with_us() -> tuple[str, ...]:
    """Goes before a command, so that a kill of this process is one of the child. Empty without util-linux
    2.33: the child then ends with its window, seconds later.

    A function called between fork and exec could do the same, but not safely beside other threads.
    """
    words = (shutil.which("setpriv") or "", "--pdeathsig", "KILL", "--")
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        tried = subprocess.run([*words, "true"], capture_output=True, check=False, timeout=2)
        return words if tried.returncode == 0 else ()
    return ()


def _wait(process: subprocess.Popen[bytes], window_s: float, stop: threading.Event) -> float | None:
    """CPU seconds of the ended child; None when it was stopped because the run ends. Leaves no zombie."""
    deadline_s = time.monotonic() + window_s + GRACE_S
    while True:
        stopped, late = stop.wait(POLL_S), time.monotonic() > deadline_s
        if stopped or late:
            process.send_signal(signal.SIGKILL)
        pid, status, usage = os.wait4(process.pid, 0 if stopped or late else os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            if late and not stopped:
                raise TimeoutError(f"py-spy did not end within {window_s + GRACE_S:.0f} s")
            return None if stopped else usage.ru_utime + usage.ru_stime
