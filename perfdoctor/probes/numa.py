"""Where the server's threads run, seen from its GPU: on the CPUs next to it, or on another NUMA node.

Only where there are two nodes and a GPU whose node the system tells; a single node is no finding but a fact.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfdoctor.probes._nvml import attempt, handles_of, open_nvml, with_processes
from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable, gauges
from perfdoctor.probes._subject import Subject

SYS = Path("/sys")
PROC = Path("/proc")
METRICS = gauges(
    "numa",
    "cat /sys/bus/pci/devices/BUS/numa_node; ps -L -o psr= -p PID",
    {
        "nodes": ("", "nodes of memory with CPUs of their own"),
        "far": (
            "share",
            "CPU time since the last reading of threads that run on another node than the GPU's",
        ),
    },
)


def parse_cpus(text: str) -> frozenset[int]:
    """`0-3,8` as numbers; empty for a node without CPUs."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def nodes_of(root: Path) -> dict[int, frozenset[int]]:
    """CPUs by node; memory without CPUs (such as a GPU's own) is none."""
    folder = root / "devices/system/node"
    found = {int(f.parent.name[4:]): parse_cpus(f.read_text()) for f in folder.glob("node[0-9]*/cpulist")}
    return {node: cpus for node, cpus in found.items() if cpus}


def gpu_node(root: Path, bus_id: str) -> int | None:
    """The node next to a PCI device; None where the system does not know (-1)."""
    domain, _, rest = bus_id.lower().partition(":")
    try:
        node = int((root / "bus/pci/devices" / f"{domain[-4:]}:{rest}" / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def parse_thread(content: str) -> tuple[int, int]:
    """(CPU it last ran on, ticks of CPU time) of /proc/PID/task/TID/stat."""
    fields = content.rpartition(")")[2].split()
    return int(fields[36]), int(fields[11]) + int(fields[12])


class NumaReader:
    def __init__(self, subject: Subject, near: frozenset[int], nodes: int, proc: Path = PROC) -> None:
        self._subject, self._near, self._nodes, self._proc = subject, near, nodes, proc
        self._ticks: dict[str, int] = {}
        self.gaps: Sequence[Gap] = ()

    def read(self) -> Sequence[Reading]:
        gained = self._gained()
        whole = sum(gained.values())
        far = sum(ticks for cpu, ticks in gained.items() if cpu not in self._near)
        return (Reading({"nodes": float(self._nodes), "far": far / whole if whole else None}),)

    def _gained(self) -> Mapping[int, int]:
        """Ticks since the last reading by CPU, of all threads of the server; the first reading has none."""
        found: dict[int, int] = {}
        for pid in self._subject.pids():
            for file in (self._proc / str(pid) / "task").glob("*/stat"):
                try:
                    cpu, ticks = parse_thread(file.read_text())
                except OSError:
                    continue
                key = f"{pid}/{file.parent.name}"
                found[cpu] = found.get(cpu, 0) + ticks - self._ticks.get(key, ticks)
                self._ticks[key] = ticks
        return found

    def close(self) -> None:
        """Nothing is kept open."""


def open_numa(
    subject: Subject,
    stop: threading.Event,
    root: Path = SYS,
    proc: Path = PROC,
    nvml: Callable[[], Any] = open_nvml,
) -> NumaReader:
    nodes = nodes_of(root)
    if len(nodes) < 2:
        raise Unavailable("unsupported", "not applicable: this host has one NUMA node")
    library = nvml()
    handles = handles_of(library)
    used = with_processes(library, handles, subject.pids()) if len(handles) > 1 else [0]
    if not used:
        raise NotYet("absent", "no process of the server was seen on a GPU")
    info = attempt(library, lambda: library.nvmlDeviceGetPciInfo(handles[used[0]]))
    bus = getattr(info, "busId", b"")
    node = gpu_node(root, bus.decode() if isinstance(bus, bytes) else str(bus))
    if node is None or node not in nodes:
        raise Unavailable("unsupported", "the system does not tell which NUMA node the GPU is on")
    return NumaReader(subject, nodes[node], len(nodes), proc)


PROBE = Probe(name="numa", rate_hz=0.5, max_share=0.0005, metrics=METRICS, open=open_numa, max_hz=1.0)
