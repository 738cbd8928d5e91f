"""Disk traffic of the device that holds the model.

Counters of the whole device, from all its users: read rate, mean wait of a read (read_time_s over reads) and
the share of time with any request open. They miss a reader that is throttled before its requests reach the
device, and anything on a network file system: the `io` probe sees those.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfdoctor.probes._device import device_of, largest_file
from perfdoctor.probes._probe import Gap, Probe, Reading, Unavailable, counters
from perfdoctor.probes._procfs import Files
from perfdoctor.probes._subject import Subject

SECTOR_BYTES = 512  # in this file, whatever the device's own sector size

METRICS = (
    *counters(
        "disk",
        "cat /sys/block/DEVICE/stat    (fields 1 3 4, 5 7 8; sectors of 512 bytes, milliseconds)",
        {
            "reads": ("", "reads completed"),
            "read_bytes": ("bytes", "bytes read from the device"),
            "read_time_s": ("s", "time of all reads from queue to end, added up"),
            "writes": ("", "writes completed"),
            "write_bytes": ("bytes", "bytes written to the device"),
            "write_time_s": ("s", "time of all writes from queue to end, added up"),
        },
    ),
    *counters(
        "disk", "iostat -x 1    (%util)", {"busy_time_s": ("s", "time with at least one request open")}
    ),
)


def parse_stat(content: bytes) -> dict[str, float | None]:
    """/sys/block/DEVICE/stat: the numbers psutil gives too, for one device at a tenth of the cost."""
    fields = [int(field) for field in content.split()[:10]]
    return {
        "reads": fields[0],
        "read_bytes": fields[2] * SECTOR_BYTES,
        "read_time_s": fields[3] / 1e3,
        "writes": fields[4],
        "write_bytes": fields[6] * SECTOR_BYTES,
        "write_time_s": fields[7] / 1e3,
        "busy_time_s": fields[9] / 1e3,
    }


def busiest(disks: Mapping[str, Any]) -> str | None:
    """The device with most bytes moved since boot; None without any."""
    return max(disks, key=lambda d: (disks[d].read_bytes + disks[d].write_bytes, d), default=None)


class DiskReader:
    def __init__(self, subject: Subject, files: Files, disks: Callable[[], Mapping[str, Any]]) -> None:
        """`disks` gives psutil's counters by device; whole disks are those with a folder in /sys/block."""
        self._subject, self._files, self._disks = subject, files, disks
        self._device: str | None = None
        self._device_for: str | None = None
        self._why = ""

    @property
    def gaps(self) -> Sequence[Gap]:
        return (Gap("device of the model", self._why),) if self._why else ()

    def read(self) -> Sequence[Reading]:
        device = self._choose()
        return (Reading(parse_stat(self._files.read(f"/sys/block/{device}/stat")), {"device": device}),)

    def _choose(self) -> str:
        """Settled once for each model path, so that a counter series keeps its device."""
        path = self._subject.model_path
        if self._device is not None and path == self._device_for:
            return self._device
        self._device_for = path
        self._device, self._why = self._search(path)
        return self._device

    def _search(self, path: str | None) -> tuple[str, str]:
        device, why = (None, "the path of the weights is not known")
        if path is not None:
            device, why = device_of(largest_file(path))
        if device is not None and Path(f"/sys/block/{device}/stat").exists():
            return device, ""
        try:
            whole = {d: c for d, c in self._disks().items() if Path(f"/sys/block/{d}/stat").exists()}
        except (OSError, NotImplementedError):  # psutil's word for a system without disk statistics
            whole = {}
        instead = busiest(whole)
        if instead is None:
            raise Unavailable("unsupported", "the kernel shows no block device here")
        return instead, f"{why or f'{device} keeps no statistics'}; the busiest device is shown"

    def close(self) -> None:
        self._files.close()


def open_disk(subject: Subject, stop: threading.Event) -> DiskReader:
    import psutil

    return DiskReader(subject, Files(), lambda: psutil.disk_io_counters(perdisk=True) or {})


PROBE = Probe(name="disk", rate_hz=5.0, max_share=0.0005, metrics=METRICS, open=open_disk)
