"""The control group of a process, version 1 or 2: its CPU quota and memory limit, wherever on the way up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from perfdoctor.probes._procfs import Files, parse_keys

NO_LIMIT_BYTES = 1 << 60  # version 1 says "none" with a number near 2**63


@dataclass(frozen=True, slots=True)
class Group:
    """`folders` lead from the process's own group up to the mount; any of them may set a limit."""

    version: int
    folders: tuple[str, ...]


def locate(membership: str, mountinfo: str, controller: str) -> tuple[int, str, str] | None:
    """(version, mount point, path below it) for a controller.

    From the texts of /proc/PID/cgroup and /proc/self/mountinfo. A version 1 hierarchy with the controller
    wins, since on mixed hosts it holds the controller. None when no cgroup file system is mounted.
    """
    paths = {
        name: path
        for _, names, path in (line.split(":", 2) for line in membership.splitlines() if line.count(":") > 1)
        for name in names.split(",")
    }
    second = None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if kind[:1] == ["cgroup"] and controller in kind[-1].split(",") and controller in paths:
            return 1, fields[4], _below(paths[controller], fields[3])
        if kind[:1] == ["cgroup2"]:
            second = 2, fields[4], _below(paths.get("", "/"), fields[3])
    return second


def _below(path: str, root: str) -> str:
    """A container's mount shows only a part of the hierarchy: the part of the path below that root."""
    inside = path[len(root) :] if root != "/" and path.startswith(root) else path
    return "/" if inside.startswith("/..") else "/" + inside.strip("/")


def find_group(pid: int | None, controller: str) -> Group | None:
    """The group of a process, or our own for None."""
    owner = "self" if pid is None else str(pid)
    try:
        membership = Path(f"/proc/{owner}/cgroup").read_text()
        place = locate(membership, Path("/proc/self/mountinfo").read_text(), controller)
    except OSError:
        return None
    if place is None:
        return None
    version, mount, path = place
    steps = [p for p in path.split("/") if p]
    folders = [f"{mount}/{'/'.join(steps[:n])}".rstrip("/") for n in range(len(steps), -1, -1)]
    return Group(version, tuple(f for f in folders if Path(f).is_dir()))


@dataclass(frozen=True, slots=True)
class Quota:
    """`cores` None: no quota set. The counters are None where the kernel keeps none."""

    cores: float | None = None
    periods: float | None = None
    throttled: float | None = None
    throttled_s: float | None = None


def parse_cores(text: bytes) -> float | None:
    """`50000 100000` (quota and period in microseconds) is half a core; `max ...` and `-1 ...` are none."""
    quota, period = text.split()
    return None if quota in (b"max", b"-1") else int(quota) / int(period)


def parse_throttle(content: bytes) -> tuple[float | None, float | None, float | None]:
    """(periods, throttled periods, throttled seconds) of cpu.stat; version 1 counts nanoseconds."""
    keys = parse_keys(content, (b"nr_periods", b"nr_throttled", b"throttled_usec", b"throttled_time"))
    micro, nano = keys.get(b"throttled_usec"), keys.get(b"throttled_time")
    throttled_s = micro / 1e6 if micro is not None else nano / 1e9 if nano is not None else None
    return keys.get(b"nr_periods"), keys.get(b"nr_throttled"), throttled_s


def read_quota(files: Files, group: Group) -> Quota:
    """The tightest quota on the way up, with that group's own counters."""
    limits = [(cores, folder) for folder in group.folders if (cores := _cores(files, group, folder))]
    cores, folder = min(limits, default=(None, group.folders[0] if group.folders else ""))
    content = _try_read(files, f"{folder}/cpu.stat")
    return Quota(cores, *parse_throttle(content)) if content is not None else Quota(cores)


def _cores(files: Files, group: Group, folder: str) -> float | None:
    if group.version == 2:
        content = _try_read(files, f"{folder}/cpu.max")
    else:
        content = _try_read(files, f"{folder}/cpu.cfs_quota_us")
        if content is not None and content.strip() != b"-1":
            content += b" " + (_try_read(files, f"{folder}/cpu.cfs_period_us") or b"100000")
        else:
            content = None
    return parse_cores(content) if content else None


def read_memory(files: Files, group: Group) -> tuple[float | None, float | None]:
    """(used, limit) in bytes of the tightest limited group, else (used, None) of the process's own group."""
    names = ("memory.current", "memory.max") if group.version == 2 else _MEMORY_V1
    levels = [(_bytes(files, f"{f}/{names[1]}"), _bytes(files, f"{f}/{names[0]}")) for f in group.folders]
    if not levels:
        return None, None
    limit, used = min(levels, key=lambda level: math.inf if level[0] is None else level[0])
    return used, limit


_MEMORY_V1 = ("memory.usage_in_bytes", "memory.limit_in_bytes")


def _bytes(files: Files, path: str) -> float | None:
    content = (_try_read(files, path) or b"max").strip()
    return None if content == b"max" or int(content) >= NO_LIMIT_BYTES else float(content)


def _try_read(files: Files, path: str) -> bytes | None:
    try:
        return files.read(path)
    except OSError:
        return None


def quota_cores(pid: int | None = None) -> float | None:
    """The quota a process runs under, in cores; None: none set."""
    group = find_group(pid, "cpu")
    files = Files()
    try:
        return read_quota(files, group).cores if group else None
    finally:
        files.close()
