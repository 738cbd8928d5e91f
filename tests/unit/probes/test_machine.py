"""Facts of the machine, its copy ceiling, and which file pages are in memory."""

from __future__ import annotations

import os

import pytest

from perfdoctor.probes import _calibrate, _host, _residency


def test_facts_come_from_the_kernels_texts():
    """An ARM kernel names no model; memory is kB."""
    assert "AMD EPYC" == _host.cpu_model("processor : 0\nmodel name\t: AMD EPYC\n")
    assert _host.cpu_model("processor : 0\nBogoMIPS : 50\n") is None
    assert 2048 == _host.memory_bytes("MemTotal:       2 kB\n")
    assert _host.memory_bytes("") is None


def test_this_machine_has_cores_and_memory():
    """The real files."""
    facts = _host.host_facts()

    assert os.cpu_count() == facts.cores
    assert (facts.memory_bytes or 0) > 1 << 20
    assert facts.cpu
    assert facts.kernel


def test_memory_ceilings_lie_between_a_slow_disk_and_a_fast_cache():
    """A small copy and a small read on one thread, both plausible."""
    rates = _calibrate.memory_ceilings(threads=1, total=8 << 20)

    assert ["copy_bytes_per_s", "read_bytes_per_s"] == list(rates)
    assert all(1e8 < rate < 1e13 for rate in rates.values())


def test_a_failed_measurement_is_missing(monkeypatch):
    """Not enough memory: None, and the run goes on."""

    def fail() -> int:
        raise MemoryError

    monkeypatch.setattr(_calibrate, "total_bytes", fail)

    assert {"copy_bytes_per_s": None, "read_bytes_per_s": None} == _calibrate.calibrate()


def test_caches_shared_by_cores_count_once(tmp_path):
    """Two sockets of two cores with 1 MiB each."""
    for cpu, sharers in enumerate(("0-1", "0-1", "2-3", "2-3")):
        folder = tmp_path / f"cpu{cpu}" / "cache" / "index3"
        folder.mkdir(parents=True)
        (folder / "size").write_text("1024K\n")
        (folder / "shared_cpu_list").write_text(sharers + "\n")

    assert 2 << 20 == _calibrate.cache_bytes(str(tmp_path))
    assert 0 == _calibrate.cache_bytes(str(tmp_path / "none"))


def test_buffers_fit_the_memory_that_is_left(monkeypatch):
    """A small container is not driven out of memory by a big cache."""
    monkeypatch.setattr(_calibrate, "allowed_bytes", lambda: 800.0)

    assert 100 == _calibrate.total_bytes()


def test_a_file_just_written_is_resident(tmp_path):
    """All its pages, the last one in part."""
    path = tmp_path / "weights"
    path.write_bytes(b"x" * (3 * 4096 + 1))

    assert 1.0 == _residency.resident_share([path])


def test_a_file_dropped_from_the_cache_is_not(tmp_path):
    """Half of the bytes of two equal files, once one is evicted; file systems in memory cannot do that."""
    kept, dropped = tmp_path / "kept", tmp_path / "dropped"
    for path in (kept, dropped):
        path.write_bytes(b"x" * (1 << 20))
    with dropped.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if _residency.resident_share([dropped]) == 1.0:
        pytest.skip("this file system keeps its pages")

    assert 0.0 == _residency.resident_share([dropped])
    assert 0.5 == _residency.resident_share([kept, dropped])


def test_residency_of_nothing_is_unknown(tmp_path):
    """No files, empty files, files that are gone."""
    (tmp_path / "empty").touch()

    assert _residency.resident_share([]) is None
    assert _residency.resident_share([tmp_path / "empty"]) is None
    assert _residency.resident_share([tmp_path / "gone"]) is None
