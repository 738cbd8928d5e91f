"""vmstat, mpstat, pidstat and top: real output, its cut and mangled forms, and what must not be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdoctor.evidence._source import Source
from tests.pasted import SAMPLES, change_sample, of_probe, read_text, reader, reading, values

# ------------------------------------------------------------------------------ vmstat


def test_vmstat_leaves_the_time_since_boot_out():
    found = reading("vmstat", "vmstat.txt")

    assert [4, 5] == values(found, "cpu", "host_runnable")
    assert [1, 0] == values(found, "cpu", "host_blocked")
    assert [0.0, 0.01] == values(found, "cpu", "host_steal_share")
    assert [0, 8 * 1024] == values(found, "disk", "read_bytes_per_s")


def test_vmstat_stamps_and_the_newer_columns():
    """`-w -t` of procps 4 has gu, and a column named after the time zone."""
    found = reading("vmstat", "vmstat_wt.txt")

    assert ("stamps", "2026-12-01T14:37:43") == (found.clock, found.wall_zero)
    assert [7, 9] == values(found, "cpu", "host_runnable")
    assert () == found.skipped


def test_one_line_of_vmstat_tells_only_its_instant(tmp_path: Path):
    """Its shares are averages since boot; its run queue is not."""
    found = change_sample("vmstat", "vmstat.txt", lambda t: "\n".join(t.split("\n")[:3]), tmp_path)

    assert found is not None
    assert [{"host_runnable": 5, "host_blocked": 0}] == [s.values for s in found.samples]
    assert "vmstat -wt 1" in found.notes[0]


def test_vmstat_swap_becomes_the_probes_counter(tmp_path: Path):
    """1000 KiB/s for one second, after a first line of the past."""
    head = "procs -memory-\n r b swpd free buff cache si so bi bo in cs us sy id wa st\n"
    rows = "1 0 9 9 9 9 5 0 0 0 1 1 50 0 50 0 0\n1 0 9 9 9 9 1000 0 0 0 1 1 50 0 50 0 0\n"
    found = read_text("vmstat", head + rows, tmp_path)

    assert found is not None
    assert [0, 1000 * 1024] == values(found, "memory", "swap_in_bytes")


@pytest.mark.parametrize(
    ("row", "why"),
    [("1 0 9 9 9 9 1", "7 of 17 columns"), ("1 0 9 9 9 9 1 0 0 0 1 1 50 50 50 0 0", "add up to 150 %")],
)
def test_a_line_of_vmstat_that_cannot_be_is_named(row: str, why: str, tmp_path: Path):
    found = change_sample("vmstat", "vmstat.txt", lambda t: f"{t}{row}\n", tmp_path)

    assert found is not None
    assert [6] == [s.line for s in found.skipped]
    assert why in found.skipped[0].why


def test_totals_of_vmstat_are_no_rates():
    assert reader("vmstat").read(Source(SAMPLES / "vmstat_d.txt")) is None


# ------------------------------------------------------------------------------ mpstat


@pytest.mark.parametrize("sample", ["mpstat.txt", "mpstat.json"])
def test_mpstat_tells_the_host_and_each_cpu(sample: str):
    found = reading("mpstat", sample)

    assert {"0", "1"} == {s.labels["core"] for s in of_probe(found, "cpu.core")}
    assert 0.0 <= (of_probe(found, "cpu")[0].values["host_idle_share"] or 0.0) <= 0.01
    assert "stamps" == found.clock


def test_mpstat_averages_are_not_another_interval():
    found = reading("mpstat", "mpstat.txt")

    assert [1.0, 2.0] == [s.at_s for s in of_probe(found, "cpu")]
    assert [1.0, 1.0] == values(found, "cpu.core", "busy_share", core="0")


def test_a_waiting_cpu_is_not_busy(tmp_path: Path):
    text = "10:00:01 CPU %usr %iowait %idle\n10:00:02 0 10.00 50.00 40.00\n"
    found = read_text("mpstat", text, tmp_path)

    assert found is not None
    assert pytest.approx([0.1]) == values(found, "cpu.core", "busy_share")


# ------------------------------------------------------------------------------ pidstat


def test_pidstat_threads_become_the_probes_counters():
    """Shares of a second added up; the names of a leader's threads lose their tree marks."""
    found = reading("pidstat", "pidstat_t.txt")
    thread = of_probe(found, "cpu.thread", tid="15272")

    assert [0.0, pytest.approx(0.4352)] == [s.values["oncpu_s"] for s in thread][:2]
    assert [0.0, pytest.approx(0.4815)] == [s.values["runq_wait_s"] for s in thread][:2]
    assert {"15228", "python"} == {thread[0].labels["pid"], thread[0].labels["name"]}


def test_pidstat_columns_on_one_line():
    """`-h -u -r -d -w` prints all of a process in one row."""
    row = of_probe(reading("pidstat", "pidstat_h.txt"), "cpu.process", pid="15228")[0].values

    assert pytest.approx(0.7523) == row["cores_used"]
    assert pytest.approx(0.0183) == row["runq_wait_share"]
    assert 1195736 * 1024 == row["rss_bytes"]
    assert (0.0, 0.0) == (row["major_faults_per_s"], row["read_bytes_per_s"])


def test_delays_that_nobody_counts_are_missing(tmp_path: Path):
    """Delay accounting is off by default, and iodelay 0 then; another value makes the zeros true."""
    off = reading("pidstat", "pidstat_d.txt")
    on = change_sample(
        "pidstat",
        "pidstat_d.txt",
        lambda t: t.replace("3.96      0.00      0.00       0", "3.96 0.00 0.00 40"),
        tmp_path,
    )

    assert on is not None
    assert {None} == set(values(off, "io", "blkio_delay_s"))
    assert pytest.approx([0.0, 0.4, 0.4]) == values(on, "io", "blkio_delay_s")


def test_an_idle_task_that_is_not_listed_used_nothing(tmp_path: Path):
    head = "10:00:00 UID PID %usr %system %guest %wait %CPU CPU Command\n"
    rows = (
        "10:00:01 0 7 50 0 0 10 50 1 vllm\n\n",
        "10:00:02 0 9 5 0 0 0 5 1 bash\n\n",
        "10:00:03 0 7 100 0 0 0 100 1 vllm\n",
    )
    found = read_text("pidstat", "".join(head + row for row in rows), tmp_path)

    assert found is not None
    assert [0.0, 0.5, 0.5, 1.5] == values(found, "cpu", "oncpu_s")


def test_a_cut_row_of_pidstat_is_named(tmp_path: Path):
    found = change_sample(
        "pidstat", "pidstat_t.txt", lambda t: t.rstrip() + "\n14:37:57        0     9818\n", tmp_path
    )

    assert found is not None
    assert ["2 of 10 columns"] == [s.why for s in found.skipped]


# ------------------------------------------------------------------------------ top


def test_the_first_screen_of_top_is_left_out():
    """It counts over a moment: its CPU line read 100 % user."""
    found = reading("top", "top.txt")

    assert [0.004] == values(found, "cpu", "host_idle_share")
    assert [0.94] == values(found, "cpu.process", "cores_used", pid="15228")
    assert [pytest.approx(1.1 * 2**30)] == values(found, "cpu.process", "rss_bytes", pid="15228")
    assert "first screen" in found.notes[0]


def test_threads_of_top_become_the_probes_counters():
    found = reading("top", "top_threads.txt")

    assert [0.0, 0.535] == values(found, "cpu.thread", "oncpu_s", tid="15272")
    assert [8] == values(found, "cpu", "host_runnable")
    assert [0] == values(found, "io", "blocked_threads")


def test_a_process_total_in_its_first_threads_row_is_no_thread():
    """procps 4.0.2: thread 15228 sleeps, and its row is the sum of the others."""
    found = reading("top", "top_threads.txt")

    assert [] == values(found, "cpu.thread", "oncpu_s", tid="15228")
    assert any("process's total" in note for note in found.notes)


def test_a_cpu_line_that_its_processes_contradict_is_not_used():
    """One screen of a batch: all CPUs idle, and a process at 93 %."""
    found = reading("top", "top_each_cpu.txt")

    assert [] == of_probe(found, "cpu.core")
    assert "all idle while its processes use" in found.notes[0]


def test_top_of_other_languages_and_times(tmp_path: Path):
    text = (
        "top - 10:00:01 up 3 days,  1 user,  load average: 1,00, 1,00, 1,00\n"
        "%Cpu(s): 50,0 us,  0,0 sy,  0,0 ni, 40,0 id, 10,0 wa,  0,0 hi,  0,0 si,  0,0 st\n"
        "MiB Swap:      0,0 total,      0,0 free,      0,0 used.  1024,0 avail Mem\n\n"
        "  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"
        "   12 me        20   0    9,1g   2,5g   1000 S 150,5   1,0   0:01,00 vllm serve --port 1\n"
    )
    found = read_text("top", text.replace("\n", "\r\n"), tmp_path)

    assert found is not None
    assert [0.4] == values(found, "cpu", "host_idle_share")
    assert [0.1] == values(found, "cpu", "host_iowait_share")
    assert [2**30] == values(found, "memory", "host_available_bytes")
    assert [1.505] == values(found, "cpu.process", "cores_used")
    assert [2.5 * 2**30] == values(found, "cpu.process", "rss_bytes")


def test_ps_is_no_top(tmp_path: Path):
    """Its %CPU is an average over the process's life."""
    text = (
        "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\nroot 1 99.0 0.1 1 1 ? Ss 10:00 0:01 python\n"
    )

    assert read_text("top", text, tmp_path) is None


def test_a_cut_row_of_top_is_named(tmp_path: Path):
    text = "  PID USER S  %CPU COMMAND\n   12 me   S  \n   13 me   S  x python\n   14 me S 1.0 python\n"
    found = read_text("top", text, tmp_path)

    assert found is not None
    assert [(2, "3 of 5 columns"), (3, "no number under %CPU")] == [(s.line, s.why) for s in found.skipped]
    assert [0.01] == values(found, "cpu.process", "cores_used")
