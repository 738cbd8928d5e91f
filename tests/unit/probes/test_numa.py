# ruff: noqa: N802 - the names are NVML's
"""Threads by node, from a made-up host of two."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfdoctor.probes import numa
from perfdoctor.probes._probe import NotYet, Unavailable
from perfdoctor.probes._subject import Subject

BUS = b"00000000:41:00.0"
PID = os.getpid()


class Nvml:
    """One or two GPUs; the driver sees us on the second."""

    NVMLError = RuntimeError

    def __init__(self, count: int = 1) -> None:
        self.count = count

    def nvmlDeviceGetCount(self) -> int:
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=PID, usedGpuMemory=1)] if handle == 1 else []

    def nvmlDeviceGetPciInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(busId=BUS if handle == 0 else b"00000000:81:00.0")


def host(root: Path, nodes: int = 2, gpu: str = "1") -> Path:
    for node in range(nodes):
        folder = root / f"devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{4 * node}-{4 * node + 3}\n")
    for bus, node_of in (("0000:41:00.0", gpu), ("0000:81:00.0", "0")):
        (root / f"bus/pci/devices/{bus}").mkdir(parents=True)
        (root / f"bus/pci/devices/{bus}/numa_node").write_text(node_of + "\n")
    return root


def thread(proc: Path, tid: int, cpu: int, ticks: int) -> None:
    fields = ["S", *["0"] * 10, str(ticks), "0", *["0"] * 23, str(cpu), "0", "0", "0"]
    folder = proc / f"{PID}/task/{tid}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(f"{tid} (a name) {' '.join(fields)}\n")


def opened(root: Path, proc: Path, nvml: Nvml | None = None) -> numa.NumaReader:
    subject = Subject(pid=PID)
    return numa.open_numa(subject, threading.Event(), root, proc, lambda: nvml or Nvml())


@pytest.mark.parametrize(
    ("text", "expected"), [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("\n", set()), ("0-1,4-5", {0, 1, 4, 5})]
)
def test_a_list_of_cpus(text, expected):
    """Ranges and single ones; a node may have none."""
    assert expected == numa.parse_cpus(text)


def test_cpu_time_far_from_the_gpu(tmp_path):
    """30 ticks beside it on node 1, 90 on node 0; the first reading has nothing to compare with."""
    root, proc = host(tmp_path / "sys"), tmp_path / "proc"
    thread(proc, 7, cpu=5, ticks=1000)
    thread(proc, 8, cpu=1, ticks=1000)
    reader = opened(root, proc)

    (first,) = reader.read()
    thread(proc, 7, cpu=5, ticks=1030)
    thread(proc, 8, cpu=1, ticks=1090)
    (second,) = reader.read()

    assert {"nodes": 2.0, "far": None} == first.values
    assert {"nodes": 2.0, "far": 0.75} == second.values


def test_one_node_is_not_applicable(tmp_path):
    """And no GPU is asked."""
    with pytest.raises(Unavailable, match="not applicable"):
        opened(host(tmp_path / "sys", nodes=1), tmp_path)


def test_a_gpu_of_no_known_node(tmp_path):
    """A virtual machine tells -1."""
    with pytest.raises(Unavailable, match="does not tell"):
        opened(host(tmp_path / "sys", gpu="-1"), tmp_path)


def test_of_several_gpus_the_servers_counts(tmp_path):
    """The second one, beside node 0: now the thread on node 1 is the far one."""
    root, proc = host(tmp_path / "sys"), tmp_path / "proc"
    thread(proc, 7, cpu=5, ticks=0)
    reader = opened(root, proc, Nvml(count=2))

    reader.read()
    thread(proc, 7, cpu=5, ticks=10)

    assert 1.0 == reader.read()[0].values["far"]


def test_a_server_that_is_on_no_gpu_yet(tmp_path):
    """Asked again later."""
    nvml = Nvml(count=2)
    nvml.nvmlDeviceGetComputeRunningProcesses = lambda handle: []  # type: ignore[method-assign]

    with pytest.raises(NotYet):
        opened(host(tmp_path / "sys"), tmp_path, nvml)
