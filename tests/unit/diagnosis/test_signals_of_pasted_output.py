"""Signals that other tools' output feeds: the disk, the host's CPUs, torch's allocator."""

from __future__ import annotations

import pytest

from perfdoctor.diagnosis.measure import measure_all
from perfdoctor.diagnosis.observations import Observations
from perfdoctor.model import Sample, Signal
from tests.factories import counters, facts, gauges, sample

VDA = {"device": "vda"}


def signal(name: str, *samples: list[Sample]) -> Signal:
    """Of a run from 20 to 60 s."""
    listed = [s for part in samples for s in part]
    return measure_all(Observations(facts(), "complete", [], listed))[name]


# ------------------------------------------------------------------------------ disk


def test_the_disk_that_is_read_most_counts() -> None:
    """The system's own disk beside the one with the weights is left out, and so is their sum."""
    samples = [
        *gauges("disk", labels={"device": "sda"}, read_bytes_per_s=1e6),
        *gauges("disk", labels=VDA, read_bytes_per_s=5e8),
        *gauges("disk", labels={"device": "all of the host"}, read_bytes_per_s=6e8),
    ]

    assert 5e8 == signal("disk.read.rate", samples).value


def test_the_sum_over_disks_is_better_than_nothing() -> None:
    samples = gauges("disk", labels={"device": "all of the host"}, read_bytes_per_s=6e8)

    assert 6e8 == signal("disk.read.rate", samples).value


def test_disk_counters_of_a_run_give_the_same_numbers() -> None:
    """100 reads a second of 1 MB, 10 ms each: one open at a time, and the device busy."""
    samples = counters(
        "disk", labels=VDA, reads=100, read_bytes=1e8, read_time_s=1.0, write_time_s=0.0, busy_time_s=0.9
    )

    assert 1e8 == pytest.approx(signal("disk.read.rate", samples).value)
    assert 0.01 == pytest.approx(signal("disk.read.await", samples).value)
    assert 1.0 == pytest.approx(signal("disk.queue.mean", samples).value)
    assert 0.9 == pytest.approx(signal("disk.busy.share", samples).value)
    assert 1e6 == pytest.approx(signal("disk.read.size", samples).value)


def test_a_read_counts_once_in_the_mean_wait() -> None:
    """One read of 100 ms and 99 of 1 ms are 1.99 ms, not 50."""
    samples = [
        sample("disk", 30.0, VDA, reads_per_s=1.0, r_await_s=0.1, read_bytes_per_s=1.0),
        sample("disk", 31.0, VDA, reads_per_s=99.0, r_await_s=0.001, read_bytes_per_s=1.0),
        sample("disk", 32.0, VDA, reads_per_s=0.0, r_await_s=None, read_bytes_per_s=0.0),
    ]

    assert 0.00199 == pytest.approx(signal("disk.read.await", samples).value)


@pytest.mark.parametrize(("writes", "expected"), [(0.0, 0.01), (5.0, None)])
def test_a_wait_of_reads_and_writes_is_one_of_reads_where_nothing_was_written(
    writes: float, expected: float | None
) -> None:
    """Old iostat tells only both together."""
    samples = gauges(
        "disk", labels=VDA, reads_per_s=10.0, writes_per_s=writes, await_s=0.01, read_bytes_per_s=1.0
    )

    assert expected == pytest.approx(signal("disk.read.await", samples).value)


def test_the_peak_is_the_best_of_intervals_and_benchmarks() -> None:
    slow = gauges("disk", labels=VDA, read_bytes_per_s=1e8)
    bench = [sample("disk.bench", 0.0, {"tool": "fio"}, read_bytes_per_s=2e9)]

    assert 1e8 == signal("disk.read.peak", slow).value
    assert 2e9 == signal("disk.read.peak", slow, bench).value
    assert 2e9 == signal("disk.read.peak", bench).value
    assert signal("disk.read.peak").value is None


@pytest.mark.parametrize("name", ["disk.read.rate", "disk.read.await", "disk.queue.mean", "disk.read.size"])
def test_no_disk_is_no_idle_disk(name: str) -> None:
    assert signal(name).value is None


# ------------------------------------------------------------------------------ CPUs


def test_told_idle_time_goes_before_counted() -> None:
    """A share as mpstat prints it; the run's own counters do without."""
    told = gauges("cpu", host_idle_share=0.25, host_steal_share=0.1)
    counted = [*counters("cpu", host_busy_s=1.0, host_steal_s=0.5), *gauges("cpu", host_cores=2.0)]

    assert (0.25, 0.1) == (
        pytest.approx(signal("cpu.host.idle.share", told).value),
        pytest.approx(signal("cpu.steal.share", told).value),
    )
    assert (0.5, 0.25) == (
        pytest.approx(signal("cpu.host.idle.share", counted).value),
        pytest.approx(signal("cpu.steal.share", counted).value),
    )
    assert signal("cpu.steal.share").value is None


def test_the_busiest_cpu_is_chosen_anew_each_time() -> None:
    """A thread that moves between two CPUs keeps one of them busy at any time."""
    samples = [
        sample("cpu.core", 30.0 + i, {"core": str(c)}, busy_share=float(i % 2 == c))
        for i in range(10)
        for c in (0, 1)
    ]

    assert 1.0 == signal("cpu.core.busiest.share", samples).value
    assert signal("cpu.core.busiest.share").value is None


def test_the_busiest_process_by_its_mean() -> None:
    busy = gauges("cpu.process", labels={"pid": "1"}, cores_used=2.5)
    burst = [sample("cpu.process", 30.0, {"pid": "2"}, cores_used=4.0)]
    outside = [sample("cpu.process", 5.0, {"pid": "3"}, cores_used=9.0)]

    assert 4.0 == signal("cpu.process.busiest.cores", busy, burst, outside).value
    assert signal("cpu.process.busiest.cores", outside).value is None


def test_runnable_tasks() -> None:
    assert 4.0 == pytest.approx(signal("cpu.runnable.mean", gauges("cpu", host_runnable=4.0)).value)
    assert signal("cpu.runnable.mean").value is None


# ------------------------------------------------------------------------------ allocator


def test_shares_of_what_torch_holds() -> None:
    """10 GB held, 4 in use, 3 in pieces beside them."""
    samples = gauges("torch", reserved_bytes=10e9, allocated_bytes=4e9, inactive_split_bytes=3e9)

    assert 0.6 == pytest.approx(signal("allocator.unallocated.share", samples).value)
    assert 0.3 == pytest.approx(signal("allocator.inactive_split.share", samples).value)


def test_an_empty_cache_has_no_shares() -> None:
    samples = gauges("torch", reserved_bytes=0.0, allocated_bytes=0.0, inactive_split_bytes=0.0)

    assert signal("allocator.unallocated.share", samples).value is None
    assert signal("allocator.inactive_split.share").value is None


def test_retries_ever() -> None:
    assert 3 == signal("allocator.retries.total", gauges("torch", retries_total=3.0)).value
    assert signal("allocator.retries.total").value is None


@pytest.mark.parametrize(
    ("free", "unused", "expected"), [(1e9, 1e9, 1.0), (0.5e9, 0.5e9, 0.5), (None, 1e9, None)]
)
def test_room_at_an_error(free: float | None, unused: float, expected: float | None) -> None:
    """2 GB asked for: enough in pieces, too little, not told."""
    samples = [sample("torch.oom", 0.0, asked_bytes=2e9, free_bytes=free, unallocated_bytes=unused)]

    assert expected == signal("allocator.oom.room", samples).value
