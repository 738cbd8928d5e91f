"""From a path to the block device that holds it, as far as the kernel tells."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "glusterfs", "9p", "virtiofs")


def largest_file(path: str) -> str:
    """Of a folder, its largest file, which is where the weights are; links lead to their target."""
    place = Path(path)
    if not place.is_dir():
        return path
    files = [p for p in place.iterdir() if p.is_file()]
    return str(max(files, key=lambda p: p.stat().st_size, default=place))


def device_of(path: str, sys_root: str = "/sys", mountinfo: str | None = None) -> tuple[str | None, str]:
    """(whole disk's name, "") or (None, why): memory and network file systems have no device."""
    try:
        number = os.stat(path).st_dev  # noqa: PTH116 - follows links, as a reader would
    except OSError as error:
        return None, f"{path} cannot be looked at: {error.strerror}"
    if os.major(number):
        return disk_of(number, sys_root)
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    return _behind(number, path, text, lambda backing: device_of(backing, sys_root, text), sys_root)


def disk_of(number: int, sys_root: str = "/sys") -> tuple[str | None, str]:
    """A partition's disk; a mapped device over a single disk is that disk, over several it stays itself."""
    link = Path(f"{sys_root}/dev/block/{os.major(number)}:{os.minor(number)}")
    if not link.exists():
        return None, f"block device {os.major(number)}:{os.minor(number)} is not visible here"
    place = link.resolve()
    if (place / "partition").exists():
        place = place.parent
    slaves = sorted(place.glob("slaves/*"))
    if len(slaves) == 1:
        below = slaves[0].resolve()
        return (below.parent if (below / "partition").exists() else below).name, ""
    return place.name, ""


def _behind(
    number: int,
    path: str,
    mountinfo: str,
    follow: Callable[[str], tuple[str | None, str]],
    sys_root: str,
) -> tuple[str | None, str]:
    """The device behind a file system without one of its own: overlay layers, btrfs and zfs sources."""
    kind, source, options = mount_of(number, mountinfo)
    if kind == "overlay":
        for name in ("upperdir=", "lowerdir="):
            for layer in next((o[len(name) :] for o in options if o.startswith(name)), "").split(":"):
                if layer and Path(layer).exists() and os.major(os.stat(layer).st_dev):  # noqa: PTH116
                    return follow(layer)
        return None, "the layers of the overlay file system are not visible from here"
    if source.startswith("/dev/") and Path(source).exists():
        return disk_of(os.stat(source).st_rdev, sys_root)  # noqa: PTH116
    if kind == "tmpfs":
        return None, f"{path} lies in memory (tmpfs)"
    if kind in NETWORK or kind.startswith("fuse"):
        return None, f"{path} lies on {kind}, which has no block device here"
    return None, f"{path} lies on {kind or 'an unknown file system'} without a block device"


def mount_of(number: int, mountinfo: str) -> tuple[str, str, list[str]]:
    """(type, source, options of the file system) of the mount with this device number; empty if unknown."""
    wanted = f"{os.major(number)}:{os.minor(number)}"
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        if left.split()[2:3] == [wanted] and len(right.split(" ", 2)) == 3:
            kind, source, options = right.split(" ", 2)
            return kind, source, options.split(",")
    return "", "", []
