"""A container's CPU limit: the model server's process enters a control group with a quota.

    [fault]
    use = "scenarios.workloads.cpu_quota"
    cores = 0.3

Needs root. cgroup v1 where it has the cpu controller; v2 otherwise (from the documentation, not tried).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scenarios.workloads import Injection, Unavailable, _cgroup

V1 = Path("/sys/fs/cgroup/cpu")
PERIOD_US = 100_000


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    quota_us = int(PERIOD_US * float(options["cores"]))
    v1 = (V1 / "cpu.cfs_quota_us").exists() or (V1 / "cgroup.procs").exists()
    with _cgroup.made(V1 if v1 else _cgroup.V2, "cpu") as group:
        _limit(group, quota_us, v1)
        yield Injection(prefix=_cgroup.entering(group))


def _limit(group: Path, quota_us: int, v1: bool) -> None:
    try:
        if v1:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
    except FileNotFoundError as exc:
        raise Unavailable(f"this kernel has no CPU quota: {exc.filename} is missing") from exc
