# ruff: noqa: N802 - the names are NVML's
"""The server's processes on a GPU are told from all others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from perfdoctor.probes import _gpu_processes


class NVMLError(Exception):
    """As pynvml's."""


class FakeNvml:
    """Two processes, 41 and 7; utilisation samples as (pid, microsecond, percent)."""

    NVMLError = NVMLError

    def __init__(self, samples: list[tuple[int, int, int]], memory: int | None = 4_000) -> None:
        self._samples, self._memory = samples, memory

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> list[Any]:
        return [
            SimpleNamespace(pid=41, usedGpuMemory=self._memory),
            SimpleNamespace(pid=7, usedGpuMemory=500),
        ]

    def nvmlDeviceGetProcessUtilization(self, handle: Any, since: int) -> list[Any]:
        found = [SimpleNamespace(pid=p, timeStamp=at, smUtil=u) for p, at, u in self._samples if at > since]
        if not found:
            raise NVMLError("Not Found")
        return found


def test_a_neighbours_work_is_not_the_servers():
    """Memory and kernel time go to those who hold and ran them; a sample out of range is no sample."""
    nvml = FakeNvml([(41, 10, 20), (41, 20, 40), (7, 20, 90), (7, 21, 4_000)])

    found = _gpu_processes.Processes(nvml, 0).read({41})

    assert {
        "server": {"mem_used_bytes": 4_000, "util": pytest.approx(0.3)},
        "others": {"mem_used_bytes": 500, "util": pytest.approx(0.9)},
    } == found


def test_a_second_read_covers_the_time_since_the_first():
    """The driver keeps its samples for a while: none counts twice."""
    processes = _gpu_processes.Processes(FakeNvml([(41, 10, 20)]), 0)
    processes.read({41})

    assert 0.0 == processes.read({41})["server"]["util"]


def test_memory_that_is_not_told_makes_no_sum():
    """As in some containers."""
    found = _gpu_processes.Processes(FakeNvml([], memory=None), 0).read({41})

    assert found["server"]["mem_used_bytes"] is None
    assert 500 == found["others"]["mem_used_bytes"]


def test_a_driver_that_does_not_tell_gives_no_reading():
    """An empty answer is not "nobody"."""
    nvml = SimpleNamespace(NVMLError=NVMLError)

    def refuse(_: Any) -> Any:
        raise NVMLError("Not Supported")

    nvml.nvmlDeviceGetComputeRunningProcesses = refuse

    assert {} == _gpu_processes.Processes(nvml, 0).read({41})
