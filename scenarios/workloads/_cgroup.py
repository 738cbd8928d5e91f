"""A control group of our own, and the command that enters it before the server's program starts."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from scenarios.workloads import Unavailable

V2 = Path("/sys/fs/cgroup")


def entering(group: Path) -> tuple[str, ...]:
    """Put before a command: it and its children are in the group from their first instruction."""
    return ("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"))


@contextlib.contextmanager
def made(root: Path, controller: str) -> Iterator[Path]:
    """A group below `root`, a mount of version 1, or V2, where the controller is switched on first."""
    group = root / f"perfdoctor-{os.getpid()}"
    try:
        if root == V2:
            (V2 / "cgroup.subtree_control").write_text(f"+{controller}")
        group.mkdir()
    except OSError as exc:
        raise Unavailable(f"cannot make the cgroup {group}: {exc.strerror} (needs root)") from exc
    try:
        yield group
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """Moves what is left to the parent, since a cgroup with processes in it cannot be removed."""
    for _ in range(50):
        with contextlib.suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    (group.parent / "cgroup.procs").write_text(pid)
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.1)  # the last process is still being reaped
        else:
            return
