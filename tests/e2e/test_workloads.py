"""The fault injectors cause what they say, and leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from scenarios.workloads import Unavailable, _cgroup, hog, llamacpp, starved_client, throttle

READ = "import sys,time; t=time.monotonic(); open(sys.argv[1],'rb').read(); print(time.monotonic()-t)"


def read_seconds(file: Path, prefix: tuple[str, ...] = ()) -> float:
    throttle.evict([file])
    done = subprocess.run([*prefix, sys.executable, "-S", "-c", READ, file], capture_output=True, check=True)
    return float(done.stdout)


@pytest.fixture
def big_file(tmp_path: Path) -> Path:
    file = tmp_path / "big"
    file.write_bytes(os.urandom(4_000_000))
    return file


@pytest.mark.root
def test_throttle_limits_cold_reads(big_file: Path) -> None:
    """4 MB at 4 MB/s take about a second inside the cgroup, far less outside; the cgroup goes after."""
    try:
        disk = throttle.disk_of(big_file)
        with throttle.limited(disk, 4_000_000) as group:
            enter = _cgroup.entering(group)
            inside_s = read_seconds(big_file, enter)
            outside_s = read_seconds(big_file)
    except Unavailable as reason:
        pytest.skip(str(reason))

    assert 0.7 < inside_s < 5
    assert outside_s < 0.5 * inside_s
    assert not group.exists()


@pytest.mark.root
def test_throttle_goes_even_with_a_process_inside(big_file: Path) -> None:
    """A server that is still alive is moved out, so that the cgroup can be removed."""
    try:
        with throttle.limited(throttle.disk_of(big_file), 10**9) as group:
            enter = _cgroup.entering(group)
            sleeper = subprocess.Popen([*enter, "sleep", "60"])
            while str(sleeper.pid) not in (group / "cgroup.procs").read_text().split():
                time.sleep(0.01)
    except Unavailable as reason:
        pytest.skip(str(reason))

    assert not group.exists()
    assert sleeper.poll() is None
    sleeper.kill()
    sleeper.wait()


def test_no_disk_under_a_virtual_file() -> None:
    """A file on no block device cannot be throttled, and that is said."""
    with pytest.raises(Unavailable, match="no block device"):
        throttle.disk_of(Path("/proc/self/status"))


def test_hogs_are_pinned_and_end() -> None:
    """Each hog stays on its core and is gone after the block."""
    core = min(os.sched_getaffinity(0))

    with hog.hogging([core, core]) as pids:
        ends = time.monotonic() + 10
        while any(psutil.Process(pid).cpu_affinity() != [core] for pid in pids):
            assert time.monotonic() < ends

    assert 2 == len(pids)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_starved_client_gets_its_cores_back() -> None:
    """Inside the block this process has one core; afterwards what it had before."""
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("needs two cores")

    with starved_client.inject({"hogs": 1, "gap_ms": 10, "tokens": 4}) as injection:
        inside = os.sched_getaffinity(0)

    assert 1 == len(inside)
    assert before == os.sched_getaffinity(0)
    assert injection.endpoint


@pytest.mark.server
def test_healthy_server_answers() -> None:
    """The llama.cpp workload gives an endpoint that serves its model."""
    pytest.importorskip("xllamacpp")

    with llamacpp.inject({"slots": 2}) as injection:
        answer = httpx.get(f"{injection.endpoint}/v1/models", trust_env=False)

    assert "tiny" == answer.json()["data"][0]["id"]
