"""Kernel text files: kept descriptors, pure parsers, and sums over owners that come and go."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
READ_BYTES = 1 << 16
MAX_OPEN = 256  # of the 1024 descriptors a process usually has; more files are opened anew each time

PSI_WHY = "the kernel keeps no pressure information (PSI)"
PSI_ENABLE = "boot with psi=1 on the kernel command line"


class Files:
    """Small kernel files, re-read by pread on kept descriptors: a quarter of the cost of opening them."""

    def __init__(self, max_open: int = MAX_OPEN) -> None:
        self._open: dict[str, int] = {}
        self._max_open = max_open

    def read(self, path: str) -> bytes:
        """The whole file now. OSError when it or its owner is gone, or is not ours to read."""
        known = self._open.get(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if known is None else known
        keep = False
        try:
            content = os.pread(descriptor, READ_BYTES, 0)
            keep = known is not None or len(self._open) < self._max_open
        finally:
            if not keep:
                self._open.pop(path, None)
                os.close(descriptor)
        if known is None and keep:
            self._open[path] = descriptor
        return content

    def drop(self, path: str) -> None:
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        for path in tuple(self._open):
            self.drop(path)


@dataclass(frozen=True, slots=True)
class Stat:
    """What is used of /proc/PID/stat and /proc/PID/task/TID/stat, see proc_pid_stat(5)."""

    state: str
    major_faults: int
    cpu_s: float
    threads: int
    started_s: float  # since boot
    blkio_s: float  # 0 when the kernel does not account delays


def parse_stat(content: bytes) -> Stat:
    """The command in brackets may hold blanks and brackets itself, so fields count from the last one."""
    fields = content.rpartition(b")")[2].split()
    return Stat(
        state=fields[0].decode(),
        major_faults=int(fields[9]),
        cpu_s=(int(fields[11]) + int(fields[12])) / TICKS_PER_S,
        threads=int(fields[17]),
        started_s=int(fields[19]) / TICKS_PER_S,
        blkio_s=int(fields[39]) / TICKS_PER_S,
    )


def parse_schedstat(content: bytes) -> tuple[float, float]:
    """(on CPU, runnable but waiting) in seconds; the file has nanoseconds."""
    on_ns, wait_ns, _ = content.split()
    return int(on_ns) / 1e9, int(wait_ns) / 1e9


def parse_psi(content: bytes) -> dict[str, float]:
    """{"some": seconds, "full": seconds} from the exact `total` fields, which count microseconds."""
    return {
        line.split(maxsplit=1)[0].decode(): int(line.rpartition(b"total=")[2]) / 1e6
        for line in content.splitlines()
        if b"total=" in line
    }


def parse_keys(content: bytes, names: Iterable[bytes]) -> dict[bytes, int]:
    """The named integers of a `name value` or `name: value kB` file; absent names are left out."""
    wanted = set(names)
    found: dict[bytes, int] = {}
    for line in content.splitlines():
        fields = line.split(maxsplit=2)
        if len(fields) > 1 and (name := fields[0].rstrip(b":")) in wanted:
            found[name] = int(fields[1])
    return found


class Totals:
    """Sums of cumulative counters over processes or threads: what a dead one had counted stays counted."""

    def __init__(self, width: int) -> None:
        self._last: dict[Hashable, tuple[float, ...]] = {}
        self.sums = [0.0] * width

    def update(self, owner: Hashable, values: tuple[float, ...]) -> None:
        """A value below the last one means that the id was given to somebody new, who counts from zero."""
        before = self._last.get(owner)
        for i, value in enumerate(values):
            grew = before is not None and value >= before[i]
            self.sums[i] += value - before[i] if before is not None and grew else value
        self._last[owner] = values


class Tasks:
    """The threads of a process tree, listed afresh at each call."""

    def __init__(self, files: Files, leaf: str) -> None:
        self._files, self._leaf = files, leaf
        self._paths: dict[tuple[int, int], str] = {}

    def read(self, pids: Iterable[int]) -> dict[tuple[int, int], bytes]:
        """{(pid, tid): content of the leaf file}; threads that end meanwhile are left out."""
        alive = {key for pid in pids for key in _threads(pid)}
        for key in self._paths.keys() - alive:
            self._files.drop(self._paths.pop(key))
        found: dict[tuple[int, int], bytes] = {}
        for pid, tid in alive:
            path = self._paths.setdefault((pid, tid), f"/proc/{pid}/task/{tid}/{self._leaf}")
            try:
                found[pid, tid] = self._files.read(path)
            except (FileNotFoundError, ProcessLookupError):
                continue
        return found


def _threads(pid: int) -> list[tuple[int, int]]:
    try:
        return [(pid, int(name)) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - names only
    except OSError:
        return []
