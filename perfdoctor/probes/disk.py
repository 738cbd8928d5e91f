"""Disk traffic of the device that holds the model.

Counters of the whole device, from all its users: read rate, mean wait of a read (read_time_s over reads) and
the share of time with any request open. They miss a reader that is throttled before its requests reach the
device, and anything on a network file system: the `io` probe sees those.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from perfdoctor.probes._device import device_of, largest_file
from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable, counters
from perfdoctor.probes._subject import Subject

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


def values_of(counters: Any) -> dict[str, float | None]:
    """psutil's counters of one device, milliseconds turned into seconds. `busy_time` exists on Linux only."""
    busy_ms = getattr(counters, "busy_time", None)
    return {
        "reads": counters.read_count,
        "read_bytes": counters.read_bytes,
        "read_time_s": counters.read_time / 1e3,
        "writes": counters.write_count,
        "write_bytes": counters.write_bytes,
        "write_time_s": counters.write_time / 1e3,
        "busy_time_s": None if busy_ms is None else busy_ms / 1e3,
    }


def busiest(disks: Mapping[str, Any]) -> str | None:
    """The device with most bytes moved since boot; None without any."""
    return max(disks, key=lambda d: (disks[d].read_bytes + disks[d].write_bytes, d), default=None)


class DiskReader:
    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._device: str | None = None
        self._device_for: str | None = None
        self._why = ""

    @property
    def gaps(self) -> Sequence[Gap]:
        return (Gap("device of the model", self._why),) if self._why else ()

    def read(self) -> Sequence[Reading]:
        import psutil

        disks = psutil.disk_io_counters(perdisk=True)
        if not disks:
            raise Unavailable("unsupported", "the kernel shows no block device here")
        device = self._choose(disks)
        return (Reading(values_of(disks[device]), {"device": device}),)

    def _choose(self, disks: Mapping[str, Any]) -> str:
        """Settled once for each model path, so that a counter series keeps its device."""
        path = self._subject.model_path
        if self._device is not None and self._device in disks and path == self._device_for:
            return self._device
        self._device, self._device_for = None, path
        self._why = "the path of the weights is not known; the busiest device is shown"
        if path is not None:
            self._device, why = device_of(largest_file(path))
            if self._device is not None and self._device not in disks:
                why, self._device = f"{self._device} keeps no statistics", None
            self._why = f"{why}; the busiest device is shown" if why else ""
        self._device = self._device or busiest(disks)
        if self._device is None:
            raise NotYet("absent", "no device has moved any data")
        return self._device

    def close(self) -> None:
        """Nothing is kept open."""


def open_disk(subject: Subject, stop: threading.Event) -> DiskReader:
    import psutil  # noqa: F401 - its import belongs to opening, not to the first reading

    return DiskReader(subject)


PROBE = Probe(name="disk", rate_hz=5.0, max_share=0.001, metrics=METRICS, open=open_disk)
