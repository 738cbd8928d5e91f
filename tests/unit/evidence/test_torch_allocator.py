"""What torch says of its memory: the summary table and the out-of-memory error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import change_sample, read_text, reading, values

MIB, GIB = 2**20, 2**30


def test_the_summary_of_a_new_torch():
    """Current usage, in binary units; the pools' rows are parts of those above."""
    found = reading("torch_memory", "memory_summary_2_13.txt")

    assert {
        "ooms_total": 0,
        "retries_total": 3,
        "allocated_bytes": 3337 * MIB,
        "active_bytes": 3433 * MIB,
        "reserved_bytes": 11444 * MIB,
        "inactive_split_bytes": 2288 * MIB,
    } == found.samples[0].values
    assert {"device": "0"} == found.samples[0].labels


def test_the_summary_of_an_old_torch():
    """It wrote MB for 2**20 bytes; a row that is not there is missing, not nothing."""
    found = reading("torch_memory", "memory_summary_1_4.txt")

    assert 12420 * MIB == found.samples[0].values["reserved_bytes"]
    assert "inactive_split_bytes" not in found.samples[0].values


def test_a_cut_row_of_the_summary_is_named(tmp_path: Path):
    found = change_sample(
        "torch_memory", "memory_summary_1_4.txt", lambda t: t.replace("12420 MB", "   ???  "), tmp_path
    )

    assert found is not None
    assert ["no size under current usage of GPU reserved memory"] == [s.why for s in found.skipped]
    assert "reserved_bytes" not in found.samples[0].values


def test_two_tables_of_one_gpu_are_two_instants(tmp_path: Path):
    found = change_sample("torch_memory", "memory_summary_1_4.txt", lambda t: t + t, tmp_path)

    assert found is not None
    assert ([0.0, 1.0], "none") == ([s.at_s for s in found.samples], found.clock)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (0, {"asked_bytes": 20 * MIB, "free_bytes": 28.94 * MIB, "unallocated_bytes": 0.09 * GIB}),
        (1, {"asked_bytes": 2.29 * GIB, "allocated_bytes": 2.06 * GIB, "unallocated_bytes": 0.26 * GIB}),
        (2, {"asked_bytes": 256 * MIB, "free_bytes": 48 * MIB, "unallocated_bytes": 812.5 * MIB}),
    ],
)
def test_every_generation_of_the_error(at: int, expected: dict[str, float]):
    """`reserved in total`, `cached`, and `reserved by PyTorch but unallocated` over several lines."""
    found = reading("torch_oom", "out_of_memory.txt").samples[at].values

    assert {n: pytest.approx(v, rel=1e-6) for n, v in expected.items()} == {n: found[n] for n in expected}


def test_a_process_larger_than_its_gpu_is_not_read():
    """torch subtracts unsigned numbers: 17179869184 GiB."""
    found = reading("torch_oom", "out_of_memory.txt")

    assert [None] == values(found, "torch.oom", "process_bytes")
    assert [3] == [s.line for s in found.skipped]


def test_half_an_error_tells_what_it_has(tmp_path: Path):
    found = read_text("torch_oom", "CUDA out of memory. Tried to allocate 2.00 GiB", tmp_path)

    assert found is not None
    assert {"asked_bytes": 2 * GIB} == found.samples[0].values


def test_other_memory_errors_are_not_claimed(tmp_path: Path):
    assert read_text("torch_oom", "Out of memory: Killed process 12 (python)\n", tmp_path) is None
