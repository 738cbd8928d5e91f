"""A slow volume: reads of the disk that holds the model are limited through a cgroup, and its cache is cold.

    [fault]
    use = "scenarios.workloads.throttle"
    model = "tiny:medium"              # whose weight files are evicted; may be a folder
    read_bytes_per_s = 8_000_000

The server's process enters the cgroup before its program starts, so every byte that it reads from that disk
counts; what Python and torch need is read into the cache before, without the limit. Needs root. cgroup v1
where it has the blkio controller; v2 otherwise.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scenarios.workloads import Injection, Unavailable, _cgroup

V1 = Path("/sys/fs/cgroup/blkio")


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    weights = _prepared(str(options["model"]))
    warm_programs()
    with limited(disk_of(weights[0]), int(options["read_bytes_per_s"])) as group:
        evict(weights)
        yield Injection(prefix=_cgroup.entering(group))


@contextlib.contextmanager
def limited(disk: str, bytes_per_s: int) -> Iterator[Path]:
    """A cgroup whose processes read at most that fast from the disk `major:minor`; removed at the end."""
    root, file, line = _limit(disk, bytes_per_s)
    with _cgroup.made(root, "io") as group:
        (group / file).write_text(line)
        yield group


def _limit(disk: str, bytes_per_s: int) -> tuple[Path, str, str]:
    """(where groups with the controller are, its limit's file, the line to write)."""
    if (V1 / "blkio.throttle.read_bps_device").exists():
        return V1, "blkio.throttle.read_bps_device", f"{disk} {bytes_per_s}"
    controllers = _cgroup.V2 / "cgroup.controllers"
    if controllers.exists() and "io" in controllers.read_text().split():
        return _cgroup.V2, "io.max", f"{disk} rbps={bytes_per_s}"
    raise Unavailable("no cgroup controller limits reads here (neither v1 blkio nor v2 io)")


def disk_of(path: Path) -> str:
    """`major:minor` of the whole disk under a file; a limit cannot be set on a partition."""
    device = path.stat().st_dev
    node = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not node.exists():
        raise Unavailable(f"{path} lies on no block device (overlay, tmpfs or network file system)")
    real = node.resolve()
    whole = real.parent if (real / "partition").exists() else real
    return (whole / "dev").read_text().strip()


def evict(files: Sequence[Path]) -> None:
    """Drops these files, and only these, from the page cache."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # dirty pages would stay
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _prepared(model: str) -> tuple[Path, ...]:
    """The weight files, made first where they are a tiny model's."""
    from perfdoctor.local import models

    source = models.resolve(model)
    models.prepare(source)
    return source.weight_files()


def warm_programs() -> None:
    """Reads the libraries into the page cache, so that the limit is felt by the weights alone."""
    command = [
        sys.executable,
        "-c",
        "import torch, transformers, aiohttp.web; import transformers.models.qwen2",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
