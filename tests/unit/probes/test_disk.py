"""From the model's path to its device, and that device's counters."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path

import pytest

from perfdoctor.probes import disk
from perfdoctor.probes._device import device_of, disk_of, largest_file, mount_of
from perfdoctor.probes._probe import Unavailable
from perfdoctor.probes._procfs import Files
from perfdoctor.probes._subject import Subject

Counters = namedtuple("Counters", "read_bytes write_bytes")


def block_device(sys_root: Path, number: str, place: str, partition: bool = False) -> Path:
    """A device's folder with the link from its number, as sysfs has them."""
    folder = sys_root / "devices" / place
    folder.mkdir(parents=True)
    if partition:
        (folder / "partition").write_text("1\n")
    links = sys_root / "dev" / "block"
    links.mkdir(parents=True, exist_ok=True)
    (links / number).symlink_to(folder)
    return folder


def test_a_partition_belongs_to_its_disk(tmp_path):
    """nvme0n1p2 -> nvme0n1."""
    block_device(tmp_path, "259:2", "block/nvme0n1/nvme0n1p2", partition=True)

    assert ("nvme0n1", "") == disk_of(os.makedev(259, 2), str(tmp_path))


def test_a_mapped_device_over_one_disk_is_that_disk(tmp_path):
    """dm-0 over sda2 over sda: the requests wait at sda."""
    below = block_device(tmp_path, "8:2", "block/sda/sda2", partition=True)
    mapped = block_device(tmp_path, "253:0", "virtual/block/dm-0")
    (mapped / "slaves").mkdir()
    (mapped / "slaves" / "sda2").symlink_to(below)

    assert ("sda", "") == disk_of(os.makedev(253, 0), str(tmp_path))


def test_a_mapped_device_over_several_disks_stays_itself(tmp_path):
    """A RAID has counters of its own."""
    mapped = block_device(tmp_path, "9:0", "virtual/block/md0")
    for name in ("sda", "sdb"):
        (mapped / "slaves" / name).mkdir(parents=True)

    assert ("md0", "") == disk_of(os.makedev(9, 0), str(tmp_path))


def test_a_hidden_device_says_so(tmp_path):
    """Containers often lack /sys/dev/block."""
    device, why = disk_of(os.makedev(8, 0), str(tmp_path))

    assert device is None
    assert "8:0 is not visible" in why


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("tmpfs", "tmpfs", "in memory"),
        ("nfs4", "host:/models", "on nfs4"),
        ("fuse.gcsfuse", "bucket", "on fuse.gcsfuse"),
        ("overlay", "overlay", "layers of the overlay"),
        ("virtiofs", "share", "on virtiofs"),
    ],
)
def test_file_systems_without_a_device_say_why(kind, source, expected):
    """Memory, network, and overlays whose layers lie outside the container."""
    number = Path("/proc").stat().st_dev  # any number without a device will do
    mountinfo = f"1 1 {os.major(number)}:{os.minor(number)} / /m rw - {kind} {source} rw,lowerdir=/nowhere\n"

    device, why = device_of("/proc", mountinfo=mountinfo)

    assert device is None
    assert expected in why


def test_an_unknown_mount_is_nothing():
    """Its number is not in the table."""
    assert ("", "", []) == mount_of(os.makedev(0, 99), "1 1 0:5 / /m rw - tmpfs tmpfs rw\n")


def test_the_largest_file_stands_for_a_model_folder(tmp_path):
    """The weights may be links to another disk than the folder's."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(bytes(1000))

    assert str(tmp_path / "model.safetensors") == largest_file(str(tmp_path))
    assert str(tmp_path / "config.json") == largest_file(str(tmp_path / "config.json"))


def test_a_path_that_is_gone_says_so(tmp_path):
    """No device, but a reason."""
    device, why = device_of(str(tmp_path / "gone"))

    assert device is None
    assert "cannot be looked at" in why


def test_counters_are_bytes_and_seconds():
    """Sectors of 512 bytes, milliseconds."""
    values = disk.parse_stat(b"  100  0  4000  2500  10  0  80  300  0  1800  2800 0 0 0 0 0 0\n")

    assert {
        "reads": 100,
        "read_bytes": 2_048_000,
        "read_time_s": 2.5,
        "writes": 10,
        "write_bytes": 40_960,
        "write_time_s": 0.3,
        "busy_time_s": 1.8,
    } == values


def test_the_busiest_device_stands_in():
    """Most bytes moved; none without devices."""
    assert "sdb" == disk.busiest({"sda": Counters(5, 5), "sdb": Counters(20, 0)})
    assert disk.busiest({}) is None


@pytest.fixture
def some_disk() -> str:
    names = sorted(p.parent.name for p in Path("/sys/block").glob("*/stat"))
    if not names:
        pytest.skip("this machine shows no block device")
    return names[0]


def test_without_a_path_the_busiest_is_shown_with_the_reason(some_disk):
    """And the model's own device is taken once its path is known, or the reason changes."""
    subject = Subject()
    reader = disk.DiskReader(subject, Files(), lambda: {some_disk: Counters(1, 1)})

    (reading,) = reader.read()

    assert some_disk == reading.labels["device"]
    assert set(reading.values) == {m.name for m in disk.METRICS}
    assert "path of the weights is not known" in reader.gaps[0].why

    subject.model_path = "/proc/self/status"
    reader.read()

    assert "/proc" in reader.gaps[0].why
    reader.close()


def broken_disks():
    raise NotImplementedError("no disk statistics")


@pytest.mark.parametrize("disks", [dict, broken_disks])
def test_a_host_without_block_devices_is_unsupported(disks):
    """As in some sandboxes."""
    reader = disk.DiskReader(Subject(), Files(), disks)

    with pytest.raises(Unavailable) as caught:
        reader.read()

    assert "unsupported" == caught.value.status
