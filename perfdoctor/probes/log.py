"""A server's own log, where it is told which: its statistics lines, and once, what its start took.

For servers whose /metrics is closed or absent. Statistics count only when written while the run goes on: the
file is followed from its end. The start was before; its lines are a reading of their own, `log.start`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from perfdoctor import logs
from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable, counters, gauges
from perfdoctor.probes._subject import Subject

AT_ONCE = 2**20  # bytes of one reading: a log that grows faster is skipped over, and says so
START_BYTES = 16 * 2**20  # of the file's begin, looked through for the server's start
METRICS = (
    *gauges(
        "log",
        "tail -f LOG | grep -E 'Running:|#running-req'",
        {
            "running": ("", "requests being served"),
            "waiting": ("", "requests queued inside the server"),
            "kv_usage": ("share", "KV cache in use"),
            "generation_tokens_per_s": ("tokens/s", "pace of generation as the server averages it"),
        },
    ),
    *counters(
        "log",
        "grep -c preempted LOG",
        {"preemptions": ("", "requests thrown out of the KV cache, counted from the run's begin")},
    ),
    *gauges(
        "log.start",
        "grep -E 'Loading weights took|Graph capturing finished|init engine' LOG",
        {
            "model_s": ("s", "loading the model, its weights included"),
            "weights_s": ("s", "reading the weights into their places"),
            "engine_s": (
                "s",
                "from the loaded model to a ready engine: profiling, cache, compilation, graphs",
            ),
            "compile_s": ("s", "torch.compile"),
            "graph_s": ("s", "capturing CUDA graphs"),
            "runner_s": ("s", "the whole start of ollama's runner"),
            "weights_bytes": ("bytes", "memory of the loaded model on one device"),
            "kv_tokens": ("", "tokens that the KV cache has room for"),
            "kv_concurrency": ("", "requests of full length that fit into it"),
            "on_host_share": ("share", "layers that run on the CPU, of all"),
            "eager": ("flag", "1 when CUDA graphs are switched off"),
        },
    ),
)


class LogReader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream = path.open("rb")
        self._stream.seek(0, os.SEEK_END)
        self._start = logs.read_start(_begin(path))
        self._rest = b""
        self._preemptions = 0
        self.gaps: Sequence[Gap] = ()

    def read(self) -> Sequence[Reading]:
        """The last statistics line since the reading before; at first also what the start took."""
        data = self._stream.read(AT_ONCE)
        if len(data) == AT_ONCE:
            self.gaps = (Gap("log", "it grows faster than it is read: parts were left out"),)
            self._stream.seek(0, os.SEEK_END)
        *lines, self._rest = (self._rest + data).split(b"\n")
        values: dict[str, float | None] = {}
        for raw in lines:
            line = raw.decode("utf-8", "replace")
            self._preemptions += bool(logs.PREEMPTED.search(line))
            values |= logs.read_statistics(line)
        start, self._start = self._start, {}
        statistics = Reading({**values, "preemptions": float(self._preemptions)})
        return (statistics, Reading(start, probe="log.start")) if start else (statistics,)

    def close(self) -> None:
        self._stream.close()


def _begin(path: Path) -> list[str]:
    """The lines among which a start is: a log is followed for hours, but a server starts at its begin."""
    with path.open("rb") as stream:
        return stream.read(START_BYTES).decode("utf-8", "replace").splitlines()


def open_log(subject: Subject, stop: threading.Event) -> LogReader:
    if subject.log is None:
        raise Unavailable("absent", "no log was named", "add --log FILE")
    try:
        return LogReader(Path(subject.log))
    except OSError as error:
        raise NotYet("denied", f"{subject.log}: {error.strerror}") from error


PROBE = Probe(name="log", rate_hz=1.0, max_share=0.001, metrics=METRICS, open=open_log, max_hz=2.0)
