"""top: the host's CPUs and memory, and its busiest processes or threads, a screen at a time.

Reads procps `top` as pasted from a terminal or made by `top -b`, of any version: `-H` (threads), `-1` (each
CPU), chosen columns, suffixes (`1.1g`). %CPU is of one core. Not `ps aux`, whose %CPU is an average over a
process's whole life. A process at 100 % is busy, not necessarily useful: engines poll for work, and CUDA
spins while it waits for the GPU.

The first screen of a batch counts over a moment only and is left out if others follow; of a single one, the
CPU line is not used where its processes contradict it. Make it: `top -b -H -d 2 -n 5 -p PID`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from perfdoctor.evidence import _tasks
from perfdoctor.evidence._intervals import Clock, Stamp, clock_of, stamp_of
from perfdoctor.evidence._metrics import CORE, HOST_CPU, HOST_TASKS, PROCESS
from perfdoctor.evidence._numbers import number, size_bytes
from perfdoctor.evidence._reader import Reader, Reading, Skipped
from perfdoctor.evidence._source import Line, Source
from perfdoctor.model import Sample

CPU = {"id": "host_idle_share", "wa": "host_iowait_share", "st": "host_steal_share"}
IDLE_NOISE = 0.05  # of a core, that may run while the CPU line says that nothing does
_TOP = re.compile(r"^\s*top - (\d\d?:\d\d:\d\d)")
_CPUS = re.compile(r"%?Cpu(\(s\)|\d+)\s*:\s*((?:[\d.,]+\s*%?\s*[a-z]{2},?\s*)+)")
_CELL = re.compile(r"(\d+(?:[.,]\d+)?)\s*%?\s*(us|sy|ni|id|wa|hi|si|st)\b")
_AVAILABLE = re.compile(r"^\s*([KMGT])iB Swap.*?([\d.,]+)\s*\+?\s*avail Mem")
_TASKS = re.compile(r"^\s*(Tasks|Threads):\s*\d+ total,\s*(\d+) running")
_OF_PS = {"VSZ", "TTY", "STAT", "STIME", "START", "RSS"}


@dataclass(slots=True)
class _Screen:
    stamp: Stamp | None = None
    threads: bool = False
    host: dict[str, float | None] = field(default_factory=dict)
    available_bytes: float | None = None
    cores: dict[str, float] = field(default_factory=dict)
    tasks: _tasks.Interval = field(default_factory=_tasks.Interval)
    asleep: dict[_tasks.Key, bool] = field(default_factory=dict)  # in uninterruptible sleep
    memory: dict[_tasks.Key, str] = field(default_factory=dict)  # VIRT RES SHR: alike in threads of a process


@dataclass(slots=True)
class _Parser:
    screens: list[_Screen] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    claimed: set[int] = field(default_factory=set)
    skipped: list[Skipped] = field(default_factory=list)

    def read(self, line: Line) -> None:
        text = line.text
        words = text.split()
        if match := _TOP.match(text):
            self.columns = ()
            self.screens.append(_Screen(stamp_of(match[1])))
        elif cpus := _CPUS.findall(text):
            for name, cells in cpus:
                self._cpu(name, cells)
        elif match := _TASKS.match(text):
            screen = self._screen()
            screen.threads = match[1] == "Threads"
            if screen.threads:
                screen.host["host_runnable"] = float(match[2])
        elif match := _AVAILABLE.match(text):
            self._screen().available_bytes = size_bytes(f"{match[2].replace(',', '.')}{match[1]}i")
        elif re.match(r"^\s*[KMGT]iB Mem\s*:|^\s*Mem:\s*\d+k total", text):
            pass
        elif "PID" in words and "%CPU" in words and "COMMAND" in words and not _OF_PS & set(words):
            self._screen()
            self.columns = tuple(words)
        elif self.columns and words and self._is_row(words):
            self._row(line, words)
        else:
            if words:
                self.columns = ()
            return
        self.claimed.add(line.number)

    def _screen(self) -> _Screen:
        if not self.screens:
            self.screens.append(_Screen())
        return self.screens[-1]

    def _cpu(self, name: str, cells: str) -> None:
        values = {kind: (number(text) or 0.0) / 100 for text, kind in _CELL.findall(cells)}
        if "id" not in values:
            return
        if name == "(s)":
            self._screen().host.update({CPU[kind]: values[kind] for kind in CPU if kind in values})
        else:
            self._screen().cores[name] = max(0.0, 1 - values["id"] - values.get("wa", 0.0))

    def _is_row(self, words: list[str]) -> bool:
        """A row has a number, or nothing, where the header has PID."""
        at = self.columns.index("PID")
        return len(words) > at and (words[at].isdigit() or words[at] == "-")

    def _row(self, line: Line, words: list[str]) -> None:
        if len(words) < len(self.columns):
            self.skipped.append(Skipped(line.number, f"{len(words)} of {len(self.columns)} columns"))
            return
        cells = dict(zip(self.columns, line.text.split(None, len(self.columns) - 1), strict=True))
        used = number(cells["%CPU"])
        if used is None or used < 0:
            self.skipped.append(Skipped(line.number, "no number under %CPU"))
            return
        screen = self._screen()
        values: dict[str, float | None] = {"cores_used": used / 100}
        if "RES" in cells:
            values["rss_bytes"] = size_bytes(cells["RES"].replace(",", "."), bare=1024)
        pid = cells["PID"]
        key = (cells.get("TGID", ""), pid) if screen.threads else (pid, "")
        screen.tasks.add(key, cells["COMMAND"].strip(), values)
        screen.memory[key] = " ".join(cells.get(c, "") for c in ("VIRT", "RES", "SHR"))
        if "S" in cells:
            screen.asleep[key] = cells["S"] == "D"


def read(source: Source) -> Reading | None:
    """Samples `cpu`, `cpu.core`, `cpu.process`, `cpu.thread`, `memory` and, of its threads, `io`."""
    parser = _Parser()
    for line in source.lines:
        parser.read(line)
    screens = [s for s in parser.screens if s.host or s.tasks.values or s.cores]
    if not screens:
        return None
    kept = screens[1:] if len(screens) > 1 else screens
    notes = ["the first screen of top counts over a moment and is left out"] if len(screens) > 1 else []
    notes += [_contradiction(s) for s in kept if _contradiction(s)][:1]
    dropped = [_drop_totals(s) for s in kept if s.threads]  # of every screen
    if any(dropped):
        notes.append("this top shows a process's total in the row of its first thread: that row is not used")
    clock = clock_of([s.stamp for s in kept])
    return Reading(
        samples=tuple(_samples(clock, kept)),
        metrics=(*HOST_CPU, *HOST_TASKS, *CORE, *PROCESS),
        lines=frozenset(parser.claimed),
        skipped=tuple(parser.skipped),
        notes=tuple(notes),
        clock=clock.kind,
    )


def _drop_totals(screen: _Screen) -> bool:
    """Take out rows of first threads that hold their process's total, as procps 4.0.2 prints them."""
    by_memory: dict[str, list[_tasks.Key]] = {}
    for key, memory in screen.memory.items():
        by_memory.setdefault(memory, []).append(key)
    dropped = False
    for keys in by_memory.values():
        first = min(keys, key=lambda k: (len(k[1]), k[1]))
        used = {key: screen.tasks.values[key].get("cores_used") or 0.0 for key in keys}
        rest = sum(used.values()) - used[first]
        if rest > IDLE_NOISE and abs(used[first] - rest) <= max(0.03, 0.03 * rest):
            del screen.tasks.values[first], screen.tasks.names[first]
            dropped = True
    return dropped


def _contradiction(screen: _Screen) -> str:
    """What its processes say against its CPU lines; empty where they agree."""
    used = sum(v.get("cores_used") or 0.0 for v in screen.tasks.values.values())
    idle = screen.host.get("host_idle_share", 1.0 - sum(screen.cores.values()) if screen.cores else None)
    if idle is not None and idle >= 0.999 and used > IDLE_NOISE:
        return f"top's CPU line says all idle while its processes use {used:.2f} cores: it is not used"
    return ""


def _samples(clock: Clock, screens: list[_Screen]) -> list[Sample]:
    found = []
    for at_s, screen in zip(clock.ends_s, screens, strict=True):
        wrong = bool(_contradiction(screen))
        if screen.host and not wrong:
            found.append(Sample(at_s=at_s, probe="cpu", values=screen.host))
        if screen.available_bytes is not None:
            available: dict[str, float | None] = {"host_available_bytes": screen.available_bytes}
            found.append(Sample(at_s=at_s, probe="memory", values=available))
        for core, busy in () if wrong else screen.cores.items():
            found.append(
                Sample(at_s=at_s, probe="cpu.core", labels={"core": core}, values={"busy_share": busy})
            )
        if screen.threads and screen.asleep:
            found.append(_asleep(at_s, screen))
    return [*found, *_tasks.samples(clock, [s.tasks for s in screens])]


def _asleep(at_s: float, screen: _Screen) -> Sample:
    """Threads of the server that wait for storage; of all that are listed where none looks like one."""
    chosen = {
        key for key, name in screen.tasks.names.items() if any(p.search(name) for p in _tasks.SERVERS)
    } or screen.asleep.keys()
    blocked = sum(screen.asleep.get(key, False) for key in chosen)
    return Sample(at_s=at_s, probe="io", values={"blocked_threads": float(blocked)})


READER = Reader("top", read)
