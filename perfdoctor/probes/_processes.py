"""Finding a server's processes on this host: by port, by parent, by command line."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path


def listener_pid(port: int) -> int | None:
    """The process listening on a TCP port of this host; of a forked family, its eldest.

    None when nothing listens or when the owner is hidden from this user.
    """
    import psutil

    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.AccessDenied, OSError):
        return None
    pids = {
        c.pid
        for c in connections
        if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port and c.pid
    }
    return eldest({pid: parent_pid(pid) for pid in pids})


def eldest(parents: Mapping[int, int | None]) -> int | None:
    """Of processes that share a socket, the one whose parent is not among them; the lowest id if several."""
    roots = [pid for pid, parent in parents.items() if parent not in parents]
    return min(roots, default=None)


def parent_pid(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return int(stat.rpartition(b")")[2].split()[1])


def process_tree(pid: int) -> tuple[int, ...]:
    """The process and its living descendants, root first; empty when it is gone."""
    if not Path(f"/proc/{pid}").exists():
        return ()
    if not Path(f"/proc/{pid}/task/{pid}/children").exists():  # a kernel without CONFIG_PROC_CHILDREN
        return _tree_by_psutil(pid)
    found, open_pids = [pid], [pid]
    while open_pids:
        children = _children(open_pids.pop())
        found += children
        open_pids += children
    return tuple(found)


def _children(pid: int) -> list[int]:
    """Children are listed under the thread that forked them, so all threads are asked."""
    children: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names only, and often
            with open(f"/proc/{pid}/task/{task}/children", "rb", buffering=0) as file:  # noqa: PTH123
                children += map(int, file.read().split())
    except OSError:
        pass  # it ended while being looked at: what was found so far is right
    return children


def _tree_by_psutil(pid: int) -> tuple[int, ...]:
    import psutil

    try:
        return (pid, *(child.pid for child in psutil.Process(pid).children(recursive=True)))
    except psutil.Error:
        return ()


def command_line(pid: int) -> tuple[str, ...]:
    """The arguments a process was started with; empty when it is gone, hidden or a kernel thread."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(part.decode(errors="replace") for part in raw.rstrip(b"\0").split(b"\0") if part)


def is_this_host(hostname: str) -> bool:
    """Whether a URL's host name means this machine. An unknown name is not this host."""
    import psutil

    try:
        found = {info[4][0] for info in socket.getaddrinfo(hostname.strip("[]"), None)}
    except OSError:
        return False
    own = {a.address for addresses in psutil.net_if_addrs().values() for a in addresses}
    return any(is_own_address(str(address), own) for address in found)


def is_own_address(address: str, own: Iterable[str]) -> bool:
    """Loopback (all of 127/8, ::1), the wildcard a server prints, or an address of an interface."""
    bare = address.partition("%")[0].removeprefix("::ffff:")
    if bare.startswith("127.") or bare in ("::1", "0.0.0.0", "::"):
        return True
    return bare in {o.partition("%")[0] for o in own}
