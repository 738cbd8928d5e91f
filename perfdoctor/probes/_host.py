"""The machine's facts: what two runs must share before their numbers may be compared."""

from __future__ import annotations

import os
import platform
import re
import socket
from pathlib import Path

from perfdoctor.model import GpuFacts, HostFacts
from perfdoctor.probes._cgroup import quota_cores
from perfdoctor.probes._nvml import gpu_facts, open_nvml
from perfdoctor.probes._probe import Unavailable


def host_facts() -> HostFacts:
    """A fact that cannot be read is left empty or None."""
    return HostFacts(
        hostname=socket.gethostname(),
        kernel=f"{platform.system()} {platform.release()}",
        cpu=cpu_model(_text("/proc/cpuinfo")) or platform.machine(),
        cores=os.cpu_count() or 0,
        quota_cores=quota_cores(),
        memory_bytes=memory_bytes(_text("/proc/meminfo")),
        python=platform.python_version(),
        gpus=_gpus(),
    )


def cpu_model(cpuinfo: str) -> str | None:
    """ARM kernels name no model."""
    match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return match.group(1).strip() if match else None


def memory_bytes(meminfo: str) -> int | None:
    """Of the host; a control group may allow less, see the `memory` probe."""
    match = re.search(r"^MemTotal:\s*(\d+) kB", meminfo, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _gpus() -> tuple[GpuFacts, ...]:
    try:
        nvml = open_nvml()
    except Unavailable:
        return ()
    try:
        return tuple(gpu_facts(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
    finally:
        nvml.nvmlShutdown()
