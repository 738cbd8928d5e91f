"""pidstat: CPU, waits, memory and IO of each process or thread, an interval at a time.

Reads sysstat's `pidstat` with any of `-u -r -d -w -t -h -l -p`, of all versions (%wait since 11.5, iodelay
since 10.2). %CPU is of one core; %wait is time ready to run without a CPU, which no profiler shows; iodelay
counts hundredths of a second of block IO wait, and needs `kernel.task_delayacct=1` (else it reads 0, so a 0
is not used). Idle tasks are not listed. Whether a process is the server is told by its name alone.

Make it: `pidstat -u -d -r -w -t -p PID 1`, while the server is slow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from perfdoctor.evidence import _tasks
from perfdoctor.evidence._banner import Banner, banner_of, interval_of
from perfdoctor.evidence._intervals import DAY_S, Clock, Stamp, clock_of, stamp_of
from perfdoctor.evidence._metrics import PROCESS
from perfdoctor.evidence._numbers import number
from perfdoctor.evidence._reader import Reader, Reading, Skipped
from perfdoctor.evidence._source import Line, Source

TICKS_PER_S = 100
COLUMNS: dict[str, tuple[str, float]] = {
    "%CPU": ("cores_used", 0.01),
    "%wait": ("runq_wait_share", 0.01),
    "majflt/s": ("major_faults_per_s", 1.0),
    "RSS": ("rss_bytes", 1024.0),
    "kB_rd/s": ("read_bytes_per_s", 1024.0),
    "kB_wr/s": ("write_bytes_per_s", 1024.0),
    "cswch/s": ("yields_per_s", 1.0),
    "nvcswch/s": ("preempted_per_s", 1.0),
    "iodelay": ("blocked_share", 1 / TICKS_PER_S),  # over the interval, which is divided by later
}
_LEADER = re.compile(r"^(\||\(.*\))__")  # before a thread's name
_HEADER = re.compile(r"\s(PID|TGID)\s.*\sCommand\s*$")


@dataclass(slots=True)
class _Parser:
    banner: Banner | None = None
    columns: tuple[str, ...] = ()
    intervals: dict[str, _tasks.Interval] = field(default_factory=dict)  # by the text of their stamp
    group: str = ""  # the process whose threads follow
    claimed: set[int] = field(default_factory=set)
    skipped: list[Skipped] = field(default_factory=list)

    def read(self, line: Line) -> None:
        text = line.text
        if found := banner_of(text):
            self.banner, self.columns = self.banner or found, ()
        elif _HEADER.search(text):
            words = text.replace("#", " ").split()
            start = next(i for i, w in enumerate(words) if w in ("UID", "USER", "PID", "TGID"))
            self.columns = tuple(words[start:])
            self.claimed.add(line.number)
        elif self.columns and text.strip():
            self._row(line)

    def _row(self, line: Line) -> None:
        words = line.text.split()
        if words[0].endswith(":") and words[0][0].isalpha():  # Average:, in any language
            self.claimed.add(line.number)
            return
        prefix = 2 if len(words) > 1 and words[1] in ("AM", "PM") else 1
        stamp_text = " ".join(words[:prefix])
        if not re.match(r"\d", stamp_text):
            self.columns = ()
            return
        self.claimed.add(line.number)
        cells = line.text.split(None, prefix + len(self.columns) - 1)[prefix:]
        if len(cells) < len(self.columns):
            self.skipped.append(Skipped(line.number, f"{len(cells)} of {len(self.columns)} columns"))
            return
        self._task(stamp_text, dict(zip(self.columns, cells, strict=True)))

    def _task(self, stamp_text: str, cells: dict[str, str]) -> None:
        pid, tid = cells.get("PID", cells.get("TGID", "")), cells.get("TID", "-")
        if pid not in ("-", ""):
            self.group = pid
        values = {
            ours: None if (value := number(cells[theirs])) is None or value < 0 else value * factor
            for theirs, (ours, factor) in COLUMNS.items()
            if theirs in cells
        }
        name = _LEADER.sub("", cells["Command"].strip())
        interval = self.intervals.setdefault(stamp_text, _tasks.Interval())
        interval.add((self.group, "" if tid == "-" else tid), name, values)


def _stamp(text: str, banner: Banner | None) -> Stamp | None:
    if text.isdigit():  # `-h` of old versions: seconds since 1970
        return Stamp(float(text) % DAY_S)
    return stamp_of(text, banner.date if banner else None)


def read(source: Source) -> Reading | None:
    """Samples `cpu.process`, `cpu.thread`, and of the server's tree `cpu`, `io` and `memory`."""
    parser = _Parser()
    for line in source.lines:
        parser.read(line)
    if not parser.intervals and not parser.skipped:
        return None
    stamps = [_stamp(text, parser.banner) for text in parser.intervals]
    clock = clock_of(stamps, interval_of(source.lines, "pidstat"))
    intervals = list(parser.intervals.values())
    _spread_delays(intervals, clock)
    return Reading(
        samples=tuple(_tasks.samples(clock, intervals)),
        metrics=PROCESS,
        lines=frozenset(parser.claimed),
        skipped=tuple(parser.skipped),
        clock=clock.kind,
        wall_zero=clock.wall_zero,
    )


def _spread_delays(intervals: Sequence[_tasks.Interval], clock: Clock) -> None:
    """iodelay is a sum over the interval, not a rate; where it is 0 throughout, nobody counted it."""
    kept = any(v.get("blocked_share") for i in intervals for v in i.values.values())
    for length_s, interval in zip(_tasks.lengths(clock), intervals, strict=True):
        for values in interval.values.values():
            delay = values.pop("blocked_share", None)
            if kept and delay is not None:
                values["blocked_share"] = delay / length_s


READER = Reader("pidstat", read)
