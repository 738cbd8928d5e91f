"""Resident memory, refaults and limits."""

from __future__ import annotations

import os

from perfdoctor.probes import memory
from perfdoctor.probes._procfs import PAGE_BYTES, Files
from perfdoctor.probes._subject import Subject


def test_status_is_kilobytes():
    """A zombie has none of these lines: nothing, not 0 bytes."""
    text = b"Name:\tx\nVmRSS:\t 300 kB\nRssAnon:\t 100 kB\nRssFile:\t 200 kB\n"

    assert (307_200, 204_800, 102_400) == memory.parse_status(text)
    assert memory.parse_status(b"Name:\tx\nState:\tZ\n") is None


def test_refaults_and_swap_are_pages():
    """Old kernels have one refault counter; none at all is missing, not zero."""
    new = b"workingset_refault_anon 9\nworkingset_refault_file 2\npswpin 3\n"

    assert (2 * PAGE_BYTES, 3 * PAGE_BYTES) == memory.parse_vmstat(new)
    assert (5 * PAGE_BYTES, None) == memory.parse_vmstat(b"workingset_refault 5\n")
    assert (None, None) == memory.parse_vmstat(b"nr_free_pages 1\n")


def test_this_process_is_resident():
    """A new block of memory shows in the anonymous part."""
    reader = memory.MemoryReader(Subject(pid=os.getpid()), Files())
    before = reader.read()[0].values
    block = bytearray(os.urandom(1 << 20) * 64)

    after = reader.read()[0].values
    reader.close()

    grown = after["rss_anon_bytes"] - before["rss_anon_bytes"]
    assert len(block) * 0.9 < grown
    assert after["major_faults"] >= before["major_faults"]
    assert after["host_available_bytes"] > 0


def test_before_the_server_runs_the_host_is_read_alone():
    """The tree's numbers are None with the reason."""
    reader = memory.MemoryReader(Subject(), Files())

    reading = reader.read()[0]
    reader.close()

    assert reading.values["rss_bytes"] is None
    assert reading.values["host_available_bytes"] is not None
    assert "no living process" in (reading.why or "")


def test_a_tree_that_just_ended_has_no_memory_rather_than_none_of_it():
    """Its processes vanish between listing and reading: None, not 0 bytes."""
    subject = Subject(pid=2**22 - 1)
    subject._tree, subject._tree_of, subject._tree_at_s = (2**22 - 1,), 2**22 - 1, 1e12
    reader = memory.MemoryReader(subject, Files())

    values = reader.read()[0].values
    reader.close()

    assert values["rss_bytes"] is None
    assert values["major_faults"] is None
