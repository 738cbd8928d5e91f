"""A container's CPU limit: the model server's process enters a control group with a quota.

    [fault]
    use = "scenarios.workloads.cpu_quota"
    cores = 0.3

Needs root. cgroup v1 where it has the cpu controller; v2 otherwise (from the documentation, not tried).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scenarios.workloads import Injection, Unavailable
from scenarios.workloads.throttle import ENTER, V2, remove

V1 = Path("/sys/fs/cgroup/cpu")
PERIOD_US = 100_000


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    quota_us = int(PERIOD_US * float(options["cores"]))
    with _limited(quota_us) as group:
        yield Injection(prefix=("/bin/sh", "-c", ENTER, str(group / "cgroup.procs")))


@contextlib.contextmanager
def _limited(quota_us: int) -> Iterator[Path]:
    v1 = (V1 / "cpu.cfs_quota_us").exists() or (V1 / "cgroup.procs").exists()
    group = (V1 if v1 else V2) / f"perfdoctor-{os.getpid()}"
    try:
        if not v1:
            (V2 / "cgroup.subtree_control").write_text("+cpu")
        group.mkdir()
    except OSError as exc:
        raise Unavailable(f"cannot make the cgroup {group}: {exc.strerror} (needs root)") from exc
    try:
        if v1:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        yield group
    except FileNotFoundError as exc:
        raise Unavailable(f"this kernel has no CPU quota: {exc.filename} is missing") from exc
    finally:
        remove(group)
