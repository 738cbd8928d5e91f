"""The parent's side: starts the model server as a child process, listens to it, stops it. Knows no torch.

The child lives in a session of its own, so that Ctrl-C reaches only the driver, which drains first. It ends
by itself when this process dies: its standard input is a pipe that nobody writes to and that then closes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from perfdoctor import interrupts
from perfdoctor.clock import Clock
from perfdoctor.errors import ModelError
from perfdoctor.local.switches import _choose
from perfdoctor.local.telemetry import Failed, Known, Message, Reading, Ready, decode_lines
from perfdoctor.model import Sample, TargetFacts

GRACE_S = 5.0  # between SIGTERM and SIGKILL
TAIL_LINES = 20  # of the child's own output, kept for the error message

Log = Callable[[str], None]


class LocalServer:
    """A running child. `facts` grows while it loads and is complete once `launch` has returned."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._threads: list[threading.Thread] = []
        self.pid = process.pid
        self.facts = TargetFacts(kind="local", engine="perfdoctor-local", pid=process.pid)
        self.calibration: dict[str, float | None] = {}

    @property
    def url(self) -> str:
        return self.facts.url

    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """SIGTERM, a grace period, SIGKILL, each to the child and to what it started. Repeatable.

        Returns when the process and its readers are gone.
        """
        if self._process.returncode is None:
            self._signal_all(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_S)
            self._signal_all(signal.SIGKILL)
        self._process.wait()
        for thread in self._threads:
            thread.join()
        if self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def exit_code(self) -> int:
        """Of a child that ends by itself. What it left behind is killed while its number is still taken."""
        if self._process.returncode is None:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._signal_all(signal.SIGKILL)
        return self._process.wait()

    def _signal_all(self, number: signal.Signals) -> None:
        """The child leads a process group of its own; it outlives the child as long as it has members."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _listen(self, run: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()


def launch(
    model: str,
    clock: Clock,
    emit: Callable[[Sample], None],
    log: Log,
    *,
    on_spawn: Callable[[int], None] | None = None,
    on_facts: Callable[[TargetFacts], None] | None = None,
    timeout_s: float = 600,
    device: str | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    switches: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> LocalServer:
    """Serves `model`; returns once it answers requests, raises ModelError when it cannot.

    `on_spawn` gets the pid at once; `on_facts` gets model_path and file_bytes before any weight is read.
    `emit`, `log` and `on_facts` are called from reader threads. None for device, dtype or threads: cuda where
    there is one; bfloat16 there, the checkpoint's own dtype on a CPU; as many threads as torch takes.
    `switches` are those of `perfdoctor.local.switches`, by name.
    `prefix` is put before the child's command line and must end by exec, so that the pid stays the child's.
    """
    _choose.check(switches or {})
    settings = [("device", device), ("dtype", dtype), ("threads", threads)]
    settings += [("set", f"{name}={value}") for name, value in (switches or {}).items()]
    options = [f"--{name}={value}" for name, value in settings if value is not None]
    outcome: queue.Queue[Message | None] = queue.Queue()
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    with contextlib.ExitStack() as undo:
        with interrupts.shield():  # a child that is started is known, so that it can be stopped
            process, reading = _spawn(prefix, model, clock, options)
            server = LocalServer(process)
            undo.callback(server.stop)
        if on_spawn:
            on_spawn(process.pid)
        server._listen(lambda: _read_messages(reading, server, emit, on_facts, outcome), "local-telemetry")
        server._listen(lambda: _read_output(process, log, tail), "local-output")
        _await_ready(server, outcome, tail, timeout_s)
        undo.pop_all()
    return server


def _spawn(
    prefix: Sequence[str], model: str, clock: Clock, options: Sequence[str]
) -> tuple[subprocess.Popen[bytes], int]:
    """The child, and the descriptor from which its telemetry is read."""
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [*prefix, *_command(model, clock, writing, options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(writing,),
            start_new_session=True,
            env=_environment(),
        )
    finally:
        os.close(writing)
    return process, reading


def _command(model: str, clock: Clock, fd: int, options: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "perfdoctor.local.server", "--model", model]
    return [*command, "--channel-fd", str(fd), "--zero-ns", str(clock.zero_ns), *options]


def _environment() -> dict[str, str]:
    """Nothing is fetched, no progress bars, no thread pool of the tokenizer."""
    quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}
    return {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", **quiet}


def _read_messages(
    fd: int,
    server: LocalServer,
    emit: Callable[[Sample], None],
    on_facts: Callable[[TargetFacts], None] | None,
    outcome: queue.Queue[Message | None],
) -> None:
    with os.fdopen(fd, "rb") as stream:
        for message in decode_lines(stream):
            if isinstance(message, Reading):
                emit(message.sample)
            elif isinstance(message, Known):
                server.facts = message.facts
                if on_facts:
                    on_facts(message.facts)
            else:
                outcome.put(message)
    outcome.put(None)  # the child has closed its end: it is gone


def _read_output(process: subprocess.Popen[bytes], log: Log, tail: deque[str]) -> None:
    assert process.stdout is not None
    with process.stdout as stream:
        for raw in stream:
            line = raw.decode(errors="replace").rstrip()
            if line:
                tail.append(line)
                log(f"local server: {line}")


def _await_ready(
    server: LocalServer, outcome: queue.Queue[Message | None], tail: deque[str], timeout_s: float
) -> None:
    try:
        message = outcome.get(timeout=timeout_s)
    except queue.Empty:
        what = f"the model was not ready after {timeout_s:.0f} s"
        raise ModelError(what, "loading takes longer than allowed", "try a smaller model") from None
    if isinstance(message, Ready):
        server.facts, server.calibration = message.facts, message.calibration
        return
    if isinstance(message, Failed):
        raise ModelError(message.what, message.why, message.do)
    raise exit_error(server.exit_code(), tuple(tail))


def exit_error(code: int, tail: tuple[str, ...]) -> ModelError:
    """The error of a child that ended without a word. A negative code is a signal, as subprocess has it."""
    if code == -signal.SIGKILL:
        why = "the kernel's out-of-memory killer does this (dmesg | grep -i oom)"
        return ModelError("the model server was killed while it started", why, "try a smaller model")
    last = tail[-1] if tail else "it printed nothing"
    do = "see the run's log.txt for its output"
    return ModelError(f"the model server ended while it started (exit code {code})", last, do)
