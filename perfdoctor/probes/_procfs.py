"""Kernel text files: kept descriptors, pure parsers, and sums over owners that come and go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
READ_BYTES = 1 << 16
LIST_EVERY_S = 1.0
MAX_OPEN = 256  # of the 1024 descriptors a process usually has; more files are opened anew each time

Key = tuple[int, int]  # (pid, tid)

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
    """What is used of /proc/PID/stat, see proc_pid_stat(5)."""

    major_faults: int
    cpu_s: float
    started_s: float  # since boot


def parse_stat(content: bytes) -> Stat:
    """The command in brackets may hold blanks and brackets itself, so fields count from the last one."""
    fields = content.rpartition(b")")[2].split()
    return Stat(
        major_faults=int(fields[9]),
        cpu_s=(int(fields[11]) + int(fields[12])) / TICKS_PER_S,
        started_s=int(fields[19]) / TICKS_PER_S,
    )


def parse_state(content: bytes) -> tuple[str, float]:
    """(state letter, block IO delay in seconds) of a thread's stat file; without accounting it is 0."""
    fields = content.rpartition(b")")[2].split()
    return fields[0].decode(), int(fields[39]) / TICKS_PER_S


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
        self._sums = [0.0] * width

    def update(self, owner: Hashable, values: tuple[float, ...]) -> None:
        """A value below the last one means that the id was given to somebody new, who counts from zero."""
        before = self._last.get(owner)
        for i, value in enumerate(values):
            grew = before is not None and value >= before[i]
            self._sums[i] += value - before[i] if before is not None and grew else value
        self._last[owner] = values

    @property
    def sums(self) -> tuple[float | None, ...]:
        """None each until an owner was read: nothing counted is not zero."""
        return tuple(self._sums) if self._last else (None,) * len(self._sums)


T = TypeVar("T")


class Tasks(Generic[T]):
    """One file of every thread of a process tree. Most threads sleep, so most files did not change."""

    def __init__(
        self,
        files: Files,
        leaf: str,
        parse: Callable[[bytes], T],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files, self._leaf, self._parse, self._now = files, leaf, parse, now
        self._paths: dict[Key, str] = {}
        self._contents: dict[Key, bytes] = {}
        self._listed: tuple[int, ...] = ()
        self._list_due_s = 0.0
        self.values: dict[Key, T] = {}

    def read(self, pids: tuple[int, ...]) -> list[Key]:
        """Updates `values` of the living threads; returns the threads whose file changed since the last call.

        Threads are listed once a second: one that is born and ends between is missed.
        """
        if pids != self._listed or self._now() >= self._list_due_s:
            self._list(pids)
        changed = []
        for key, path in tuple(self._paths.items()):
            try:
                content = self._files.read(path)
            except (FileNotFoundError, ProcessLookupError):
                self._forget(key)
                continue
            if content != self._contents.get(key):
                self._contents[key], self.values[key] = content, self._parse(content)
                changed.append(key)
        return changed

    def _list(self, pids: tuple[int, ...]) -> None:
        self._listed, self._list_due_s = pids, self._now() + LIST_EVERY_S
        alive = {key for pid in pids for key in _threads(pid)}
        for key in self._paths.keys() - alive:
            self._forget(key)
        for pid, tid in alive - self._paths.keys():
            self._paths[pid, tid] = f"/proc/{pid}/task/{tid}/{self._leaf}"

    def _forget(self, key: Key) -> None:
        self._files.drop(self._paths.pop(key))
        self._contents.pop(key, None)
        self.values.pop(key, None)


def _threads(pid: int) -> list[Key]:
    try:
        return [(pid, int(name)) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - names only
    except OSError:
        return []
