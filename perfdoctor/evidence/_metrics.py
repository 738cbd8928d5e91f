"""Metrics that only other tools' output has: rates, since that is what they print."""

from __future__ import annotations

from collections.abc import Mapping

from perfdoctor.model import Metric


def gauges(probe: str, cross_check: str, rows: Mapping[str, tuple[str, str]]) -> tuple[Metric, ...]:
    """name -> (unit, meaning), as the probes' own tables."""
    return tuple(
        Metric(probe=probe, name=name, unit=unit, meaning=meaning, cross_check=cross_check)
        for name, (unit, meaning) in rows.items()
    )


HOST_CPU = gauges(
    "cpu",
    "mpstat 1    (percent of all CPUs)",
    {
        "host_idle_share": ("share", "CPU time of the host that nobody used, waits for IO included"),
        "host_iowait_share": ("share", "of it, with some IO of the host outstanding"),
        "host_steal_share": ("share", "CPU time that the hypervisor gave to others"),
        "host_cores": ("cores", "cores of the host, as the tool's first line says"),
    },
)
HOST_TASKS = gauges(
    "cpu",
    "vmstat 1    (columns r, b)",
    {
        "host_runnable": ("", "tasks that run or wait for a CPU"),
        "host_blocked": ("", "tasks in uninterruptible sleep"),
    },
)
CORE = gauges(
    "cpu.core",
    "mpstat -P ALL 1    (percent)",
    {"busy_share": ("share", "CPU time used on one core")},
)
PROCESS = gauges(
    "cpu.process",
    "pidstat -u -r -w 1",
    {
        "cores_used": ("cores", "CPU time of one process over the time"),
        "runq_wait_share": ("share", "time it was ready to run but waited, over the time"),
        "rss_bytes": ("bytes", "its resident memory"),
        "major_faults_per_s": ("1/s", "its page faults that waited for storage"),
        "read_bytes_per_s": ("bytes/s", "what it had fetched from storage"),
        "write_bytes_per_s": ("bytes/s", "what it had written to storage"),
        "blocked_share": ("share", "time its tasks waited for block IO, over the time"),
        "yields_per_s": ("1/s", "times a second it gave up the CPU by itself, to wait"),
        "preempted_per_s": ("1/s", "times a second the CPU was taken from it"),
    },
)
DISK = gauges(
    "disk",
    "iostat -x 1",
    {
        "reads_per_s": ("1/s", "reads completed"),
        "writes_per_s": ("1/s", "writes completed"),
        "read_bytes_per_s": ("bytes/s", "bytes read"),
        "write_bytes_per_s": ("bytes/s", "bytes written"),
        "r_await_s": ("s", "mean time of a read, from queue to end"),
        "w_await_s": ("s", "mean time of a write, from queue to end"),
        "await_s": ("s", "mean time of a request of any kind"),
        "aqu_sz": ("requests", "requests open at a time"),
        "busy_share": ("share", "time with any request open: a busy drive may have room for many more"),
    },
)
ALLOCATOR = gauges(
    "torch",
    "torch.cuda.memory_summary()",
    {
        "active_bytes": ("bytes", "memory of blocks in use, or waiting for a stream to let go of them"),
        "retries_total": ("times", "allocations that succeeded only after the cache was flushed, ever"),
        "ooms_total": ("times", "allocations that failed, ever"),
    },
)
OUT_OF_MEMORY = gauges(
    "torch.oom",
    "the text of torch.OutOfMemoryError",
    {
        "asked_bytes": ("bytes", "the allocation that failed"),
        "total_bytes": ("bytes", "memory of the GPU"),
        "free_bytes": ("bytes", "free on the GPU at that instant"),
        "process_bytes": ("bytes", "used by the process that failed, what torch knows nothing of included"),
        "allocated_bytes": ("bytes", "in use by tensors"),
        "unallocated_bytes": ("bytes", "held by torch's cache, and not in use"),
    },
)
