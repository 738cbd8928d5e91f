"""Waiting for storage: from this process's own files, and from stand-ins where the kernel must refuse."""

from __future__ import annotations

import os

import pytest

from perfdoctor.probes import io
from perfdoctor.probes._procfs import Files
from perfdoctor.probes._subject import Subject


class Replaced(Files):
    """Real files but for a few: text instead, or the error they give."""

    def __init__(self, **instead: bytes | Exception) -> None:
        super().__init__()
        self.instead = instead

    def read(self, path: str) -> bytes:
        for name, content in self.instead.items():
            if path.endswith(name.replace("__", "/")):
                if isinstance(content, Exception):
                    raise content
                return content
        return super().read(path)


PRESSURE = b"some total=2000000\nfull total=1000000\n"


def subject() -> Subject:
    return Subject(pid=os.getpid())


def test_read_bytes_and_chars():
    """Storage and calls are two different counters of one file."""
    text = b"rchar: 500\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 0\n"

    assert (4096, 500) == io.parse_io(text)


def test_this_process_reads_itself():
    """Reading a file shows in the counter of calls."""
    reader = io.IoReader(subject(), Replaced(pressure__io=PRESSURE))
    before = reader.read()[0].values

    with open(__file__, "rb") as file:  # noqa: PTH123 - a plain read
        size = len(file.read())
    after = reader.read()[0].values
    reader.close()

    assert after["process_read_chars"] - before["process_read_chars"] >= size
    assert (2.0, 1.0) == (after["psi_some_s"], after["psi_full_s"])
    assert after["threads"] >= 1
    assert 0 == after["blocked_threads"]


def test_block_delay_is_missing_when_the_kernel_does_not_account_it():
    """None with the command that turns it on; never the 0 that the file holds."""
    reader = io.IoReader(subject(), Replaced(task_delayacct=b"0\n"))

    values = reader.read()[0].values
    reader.close()

    assert values["blkio_delay_s"] is None
    assert "sysctl -w kernel.task_delayacct=1" in {g.enable for g in reader.gaps}


def test_block_delay_is_summed_over_the_threads():
    """270 ticks of 10 ms in each thread's file."""
    line = b"1 (x) D " + b"0 " * 38 + b"270 0 0"
    reader = io.IoReader(subject(), Replaced(task_delayacct=b"1\n", stat=line))

    values = reader.read()[0].values
    reader.close()

    assert values["blkio_delay_s"] == pytest.approx(2.7 * values["threads"])
    assert values["threads"] == values["blocked_threads"]


def test_another_users_process_is_a_gap_not_zero():
    """The pressure and the threads can still be read."""
    reader = io.IoReader(subject(), Replaced(**{f"{os.getpid()}__io": PermissionError()}))

    values = reader.read()[0].values
    reader.close()

    assert values["process_read_bytes"] is None
    assert any("denied" in g.why for g in reader.gaps)
    assert values["threads"] >= 1


def test_without_pressure_information_the_rest_works():
    """None with the boot option that enables it."""
    reader = io.IoReader(subject(), Replaced(pressure__io=FileNotFoundError()))

    values = reader.read()[0].values
    reader.close()

    assert values["psi_some_s"] is None
    assert any("psi=1" in (g.enable or "") for g in reader.gaps)


def test_before_the_server_runs_the_host_is_read_alone():
    """The tree's numbers are None with the reason, not zero."""
    reader = io.IoReader(Subject(), Replaced(pressure__io=PRESSURE))

    reading = reader.read()[0]
    reader.close()

    assert 2.0 == reading.values["psi_some_s"]
    assert reading.values["threads"] is None
    assert "no living process" in (reading.why or "")
