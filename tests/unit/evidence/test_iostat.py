"""iostat in all its generations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import change_sample, of_probe, read_text, reading, values

HEADER = "Device            r/s     rkB/s r_await     w/s     wkB/s w_await  aqu-sz  %util\n"
MISNAMED = "Device r/s w/s rkB/s wkB/s %rrqm %wrqm %rwait %wwait aqu-sz %util sda"


def test_the_report_since_boot_is_left_out():
    """The first report after the banner is an average over days, and would drown the rest."""
    found = reading("iostat", "iostat_12_x.txt")

    assert [4096, 209715200] == values(found, "disk", "read_bytes_per_s", device="vda")
    assert "since boot" in found.notes[0]
    assert not found.skipped


def test_units_are_bytes_seconds_and_shares():
    """kB are 1024 bytes, waits milliseconds, %util percent."""
    last = of_probe(reading("iostat", "iostat_12_x.txt"), "disk")[-1]

    assert {
        "reads_per_s": 1600,
        "read_bytes_per_s": 204800 * 1024,
        "r_await_s": pytest.approx(0.19e-3),
        "writes_per_s": 107,
        "write_bytes_per_s": 5096 * 1024,
        "w_await_s": pytest.approx(3.66e-3),
        "aqu_sz": 0.69,
        "busy_share": pytest.approx(0.292),
    } == last.values


def test_cpu_block_and_cores_are_read():
    found = of_probe(reading("iostat", "iostat_12_x.txt"), "cpu")[-1]

    assert 0.0 == found.values["host_idle_share"]
    assert pytest.approx(0.025) == found.values["host_steal_share"]
    assert 2 == found.values["host_cores"]


def test_a_wait_of_no_request_is_missing():
    """iostat prints 0.00 where nothing was read; that is no wait of nothing."""
    first = of_probe(reading("iostat", "iostat_12_x.txt"), "disk")[0]

    assert first.values["w_await_s"] is None
    assert pytest.approx(1e-3) == first.values["r_await_s"]


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("iostat_9_sectors.txt", {"read_bytes_per_s": 2240 * 512, "await_s": 10.57e-3, "aqu_sz": 1.12}),
        (
            "iostat_10_x.txt",
            {"read_bytes_per_s": 1227.20 * 1024, "r_await_s": 0.47e-3, "aqu_sz": 0.03},
        ),
        ("iostat_11_x.txt", {"reads_per_s": 114589, "r_await_s": 0.29e-3, "aqu_sz": 33.54}),
        ("iostat_12_xmt.txt", {"write_bytes_per_s": 0.12 * 2**20, "writes_per_s": 16}),
        ("iostat_12_xs.txt", {"await_s": 0.53e-3, "aqu_sz": 0.01, "busy_share": 0.008}),
        ("iostat_12_xh.txt", {"write_bytes_per_s": 160 * 1024, "writes_per_s": 28, "w_await_s": 0.11e-3}),
        ("iostat_12.txt", {"write_bytes_per_s": 4420 * 1024}),
        ("iostat_12.json", {"writes_per_s": 28, "write_bytes_per_s": 160 * 1024, "aqu_sz": 0.0}),
    ],
)
def test_every_generation_of_columns(sample: str, expected: dict[str, float]):
    """Old and new names, sectors, megabytes, short, human and JSON forms."""
    found = of_probe(reading("iostat", sample), "disk")[0].values

    assert {name: pytest.approx(value) for name, value in expected.items()} == {n: found[n] for n in expected}


def test_stamps_give_the_clock():
    found = reading("iostat", "iostat_12_xt_iso.txt")

    assert ("stamps", "2026-12-01T14:34:08") == (found.clock, found.wall_zero)


def test_only_since_boot_is_no_evidence(tmp_path: Path):
    """`iostat -x` without an interval prints that report alone."""
    found = change_sample("iostat", "iostat_12_x.txt", lambda t: "\n".join(t.split("\n")[:8]), tmp_path)

    assert found is not None
    assert () == found.samples
    assert "iostat -xyt 1" in found.notes[0]


def test_y_has_no_report_since_boot():
    """Two blank lines follow the banner then."""
    found = reading("iostat", "iostat_12_xy.txt")

    assert [176128] == values(found, "disk", "write_bytes_per_s")
    assert () == found.notes


def test_a_fragment_without_banner_is_taken_whole(tmp_path: Path):
    found = read_text("iostat", HEADER + "sda 10 100 0.5 0 0 0 0.01 1.0\n", tmp_path)

    assert found is not None
    assert [102400] == values(found, "disk", "read_bytes_per_s")


def test_decimal_commas_and_windows_line_ends(tmp_path: Path):
    found = change_sample(
        "iostat", "iostat_12_x.txt", lambda t: t.replace(".", ",").replace("\n", "\r\n"), tmp_path
    )

    assert found is not None
    assert [4096, 209715200] == values(found, "disk", "read_bytes_per_s")


def test_a_cut_row_is_named_and_not_read(tmp_path: Path):
    found = read_text("iostat", HEADER + "sda 10 100 0.5\nsdb 20 200 0.5 0 0 0 0.01 1.0\n", tmp_path)

    assert found is not None
    assert [(2, "sda: 3 of 8 columns")] == [(s.line, s.why) for s in found.skipped]
    assert ["sdb"] == [s.labels["device"] for s in found.samples]


def test_nan_and_dash_are_missing(tmp_path: Path):
    found = read_text("iostat", HEADER + "sda 10 100 -nan 0 0 - N/A 1.0\n", tmp_path)

    assert found is not None
    values = found.samples[0].values
    assert (None, None, None) == (values["r_await_s"], values["w_await_s"], values["aqu_sz"])
    assert 10 == values["reads_per_s"]


def test_a_counter_that_went_back_is_named(tmp_path: Path):
    """An old kernel's wrap: 300 petasectors a second."""
    row = "sda 143.96 153748491993931328.00 5 0 0 0 0.5 80\n"
    found = read_text("iostat", HEADER + row, tmp_path)

    assert found is not None
    assert found.samples[0].values["read_bytes_per_s"] is None
    assert [2] == [s.line for s in found.skipped]


def test_a_row_on_its_headers_line_is_read(tmp_path: Path):
    """A page that lost its line ends, with a column name that no iostat has."""
    found = read_text("iostat", f"{MISNAMED} 127.00 0.00 5120.00 0.00 0 0 92.30 0 11.72 92.30", tmp_path)

    assert found is not None
    assert pytest.approx(0.0923) == found.samples[0].values["r_await_s"]
    assert "%rwait" in found.notes[0]


def test_a_misnamed_wait_that_does_not_fit_the_queue_is_not_read(tmp_path: Path):
    found = read_text("iostat", f"{MISNAMED} 127.00 0.00 5120.00 0.00 0 0 92.30 0 1.0 92.30", tmp_path)

    assert found is not None
    assert found.samples[0].values["r_await_s"] is None


def test_reports_without_cpu_block_are_told_apart():
    """`-d`: a device that comes again begins the next report; the first is since boot."""
    found = reading("iostat", "iostat_11_x.txt")

    assert [1.0] == [s.at_s for s in of_probe(found, "disk")]


def test_a_second_host_is_left_out(tmp_path: Path):
    other = "Linux 6.1.0 (other) 	12/01/26 	_x86_64_	(8 CPU)\n\n" + HEADER
    rows = "sda 1 100 0.5 0 0 0 0.01 1.0\n\n"
    first = other.replace("(other)", "(one)").replace("\n\n", "\n\n\n")
    text = first + rows + other + rows + HEADER + rows
    found = read_text("iostat", text, tmp_path)

    assert found is not None
    assert 1 == len(of_probe(found, "disk"))
    assert {"another host than the first one"} == {s.why for s in found.skipped}


def test_other_text_is_not_claimed(tmp_path: Path):
    assert read_text("iostat", "GPU Memory Usage\nDevice is busy\n", tmp_path) is None
