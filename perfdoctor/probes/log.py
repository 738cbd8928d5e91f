"""A server's own log, where it is told which: queue, running requests and cache use of its statistics lines.

For servers whose /metrics is closed or absent. Only what is written while the run goes on counts; the file is
followed from its end. Lines of vLLM (before and since its version 1 engine) and of SGLang.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path

from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable, counters, gauges
from perfdoctor.probes._subject import Subject

AT_ONCE = 2**20  # bytes of one reading: a log that grows faster is skipped over, and says so
PREEMPTED = re.compile(r"is preempted by|Preempt(ed|ing) request|retract(ed|ing) (a )?req", re.IGNORECASE)
# our name -> where it stands in a statistics line, and the factor to our unit
PATTERNS: dict[str, tuple[re.Pattern[str], float]] = {
    "running": (re.compile(r"Running: (\d+) reqs|#running-req: (\d+)"), 1.0),
    "waiting": (re.compile(r"(?:Waiting|Pending): (\d+) reqs|#queue-req: (\d+)"), 1.0),
    "kv_usage": (re.compile(r"KV cache usage: (\d+(?:\.\d+)?)\s*%"), 0.01),
    "token_usage": (re.compile(r"token usage: (\d(?:\.\d+)?)"), 1.0),
    "generation_tokens_per_s": (
        re.compile(r"generation throughput: (\d+(?:\.\d+)?)|gen throughput \(token/s\): (\d+(?:\.\d+)?)"),
        1.0,
    ),
}
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
)


def read_line(line: str) -> dict[str, float | None]:
    """The numbers of a statistics line; empty for any other."""
    found: dict[str, float | None] = {}
    for name, (pattern, factor) in PATTERNS.items():
        match = pattern.search(line)
        if match:
            found[name] = float(next(group for group in match.groups() if group is not None)) * factor
    usage = found.pop("token_usage", None)
    if usage is not None:
        found.setdefault("kv_usage", usage)
    return found


class LogReader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream = path.open("rb")
        self._stream.seek(0, os.SEEK_END)
        self._rest = b""
        self._preemptions = 0
        self.gaps: Sequence[Gap] = ()

    def read(self) -> Sequence[Reading]:
        """The last statistics line since the reading before; none is not zero."""
        data = self._stream.read(AT_ONCE)
        if len(data) == AT_ONCE:
            self.gaps = (Gap("log", "it grows faster than it is read: parts were left out"),)
            self._stream.seek(0, os.SEEK_END)
        *lines, self._rest = (self._rest + data).split(b"\n")
        values: dict[str, float | None] = {}
        for raw in lines:
            line = raw.decode("utf-8", "replace")
            self._preemptions += bool(PREEMPTED.search(line))
            values |= read_line(line)
        return (Reading({**values, "preemptions": float(self._preemptions)}),)

    def close(self) -> None:
        self._stream.close()


def open_log(subject: Subject, stop: threading.Event) -> LogReader:
    if subject.log is None:
        raise Unavailable("absent", "no log was named", "add --log FILE")
    try:
        return LogReader(Path(subject.log))
    except OSError as error:
        raise NotYet("denied", f"{subject.log}: {error.strerror}") from error


PROBE = Probe(name="log", rate_hz=1.0, max_share=0.001, metrics=METRICS, open=open_log, max_hz=2.0)
