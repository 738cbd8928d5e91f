"""Control groups of both versions, on trees of files made for the test."""

from __future__ import annotations

import pytest

from perfdoctor.probes._cgroup import (
    Group,
    locate,
    parse_cores,
    parse_throttle,
    quota_cores,
    read_memory,
    read_quota,
)
from perfdoctor.probes._procfs import Files

V1_MOUNTS = """\
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
V2_MOUNTS = "30 24 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n"
DOCKER_V1 = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"


@pytest.mark.parametrize(
    ("membership", "mounts", "controller", "expected"),
    [
        ("4:memory:/svc\n1:cpu,cpuacct:/a/b\n0::/x\n", V1_MOUNTS, "cpu", (1, "/sys/fs/cgroup/cpu", "/a/b")),
        ("4:memory:/svc\n0::/x\n", V1_MOUNTS, "memory", (1, "/sys/fs/cgroup/memory", "/svc")),
        ("0::/user.slice/a\n", V2_MOUNTS, "cpu", (2, "/sys/fs/cgroup", "/user.slice/a")),
        ("0::/\n", V2_MOUNTS, "memory", (2, "/sys/fs/cgroup", "/")),
        ("1:cpu:/docker/abc\n", DOCKER_V1, "cpu", (1, "/sys/fs/cgroup/cpu", "/")),
        ("0::/../other\n", V2_MOUNTS, "cpu", (2, "/sys/fs/cgroup", "/")),
        ("0::/\n", "", "cpu", None),
    ],
)  # fmt: skip
def test_the_group_is_found_below_its_mount(membership, mounts, controller, expected):
    """Version 1, version 2, both mixed, inside a container, and none at all."""
    assert expected == locate(membership, mounts, controller)


@pytest.mark.parametrize(
    ("text", "expected"), [(b"max 100000\n", None), (b"-1 100000", None), (b"50000 100000", 0.5)]
)
def test_no_quota_is_none_not_infinite(text, expected):
    """`max` and -1 mean that none is set."""
    assert expected == parse_cores(text)


def test_throttled_time_has_another_unit_in_each_version():
    """Microseconds in version 2, nanoseconds in version 1; absent counters are missing."""
    assert (10, 4, 1.5) == parse_throttle(b"nr_periods 10\nnr_throttled 4\nthrottled_usec 1500000\n")
    assert (10, 4, 1.5) == parse_throttle(b"nr_periods 10\nnr_throttled 4\nthrottled_time 1500000000\n")
    assert (None, None, None) == parse_throttle(b"usage_usec 5\n")


def write(folder, **texts):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)
    return str(folder)


def test_the_tightest_quota_on_the_way_up_counts(tmp_path):
    """The parent allows half a core, the group itself two: half it is, with the parent's counters."""
    parent = write(
        tmp_path, cpu__max="50000 100000", cpu__stat="nr_periods 9\nnr_throttled 8\nthrottled_usec 7000000\n"
    )
    own = write(
        tmp_path / "own",
        cpu__max="200000 100000",
        cpu__stat="nr_periods 1\nnr_throttled 0\nthrottled_usec 0\n",
    )

    quota = read_quota(Files(), Group(2, (own, parent)))

    assert (0.5, 9, 8, 7.0) == (quota.cores, quota.periods, quota.throttled, quota.throttled_s)


def test_a_version_1_quota_is_two_files(tmp_path):
    """30 ms of every 100 ms."""
    own = write(tmp_path, cpu__cfs_quota_us="30000\n", cpu__cfs_period_us="100000\n")

    quota = read_quota(Files(), Group(1, (own,)))

    assert 0.3 == pytest.approx(quota.cores)
    assert quota.periods is None


def test_without_a_quota_the_own_group_counts(tmp_path):
    """-1 in version 1: none set, and the counters are those of the group itself."""
    own = write(
        tmp_path, cpu__cfs_quota_us="-1\n", cpu__stat="nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"
    )

    quota = read_quota(Files(), Group(1, (own,)))

    assert (None, 0) == (quota.cores, quota.throttled)


def test_memory_of_the_tightest_group_is_held_against_its_limit(tmp_path):
    """An unlimited group below a limited one: use and limit both come from the limited one."""
    parent = write(tmp_path, memory__current="900\n", memory__max="1000\n")
    own = write(tmp_path / "own", memory__current="100\n", memory__max="max\n")

    assert (900.0, 1000.0) == read_memory(Files(), Group(2, (own, parent)))


def test_version_1_says_no_limit_with_a_huge_number(tmp_path):
    """It reads as none."""
    own = write(tmp_path, memory__usage_in_bytes="100\n", memory__limit_in_bytes="9223372036854771712\n")

    assert (100.0, None) == read_memory(Files(), Group(1, (own,)))


def test_this_process_has_a_group_or_none():
    """The real files of this machine do not raise; a quota is positive if there is one."""
    cores = quota_cores()

    assert cores is None or cores > 0
