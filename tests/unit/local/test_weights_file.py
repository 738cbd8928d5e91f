"""The safetensors container is written as the library reads it, and damage is seen before loading."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from perfdoctor.local.weights_file import file_fault, header_fault, to_bfloat16, write_bfloat16


def container(header: object, payload_bytes: int = 0) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(payload_bytes)


ENTRY = {"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}


def test_the_library_reads_what_is_written(tmp_path: Path):
    """Names, shapes, dtype and values survive; the values here are exact in bfloat16."""
    from safetensors.torch import load_file

    write_bfloat16(tmp_path / "w", {"a": np.array([[1.0, -2.5]]), "b": np.array([0.0])})

    loaded = load_file(tmp_path / "w")
    assert [[1.0, -2.5]] == loaded["a"].tolist()
    assert "torch.bfloat16" == str(loaded["b"].dtype)


@pytest.mark.parametrize(
    ("value", "bits"),
    [(1.0, 0x3F80), (1.00390625, 0x3F80), (1.01171875, 0x3F82), (1.005, 0x3F81)],
    ids=["exact", "tie to even below", "tie to even above", "nearest"],
)
def test_rounding_is_to_nearest_even(value: float, bits: int):
    """As torch does it, so that a model is the same however it was converted."""
    assert bits == to_bfloat16(np.array([value]))[0]


def test_a_whole_file_has_no_fault():
    """The sizes agree to the byte."""
    whole = container(ENTRY, 4)

    assert header_fault(whole, len(whole)) is None


@pytest.mark.parametrize("missing_bytes", [-1, 1], ids=["a byte too many", "a byte short"])
def test_a_wrong_length_is_a_fault(missing_bytes: int):
    """A download that broke off, or two files run together."""
    whole = container(ENTRY, 4)

    fault = header_fault(whole, len(whole) - missing_bytes)

    assert fault is not None
    assert f"describes {len(whole)} bytes, the file has {len(whole) - missing_bytes}" in fault


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (b"", "too few"),
        (b"\xff" * 64, "claims"),
        (b"version https://git-lfs.github.com/spec/v1", "claims"),
        (struct.pack("<Q", 4) + b"{{{{", "not valid JSON"),
        (container([1]), "not valid JSON"),
        (container({"w": {"dtype": "F32"}}), "not valid JSON"),
    ],
    ids=["empty", "garbage", "LFS pointer", "no JSON", "a list", "no offsets"],
)
def test_what_is_no_container_is_a_fault(head: bytes, text: str):
    """Every kind of wrong file gets a sentence, never an exception."""
    assert text in str(header_fault(head, len(head)))


def test_a_file_is_judged_by_its_header_alone(tmp_path: Path):
    """The fault of a truncated file is found from disk as well."""
    path = tmp_path / "model.safetensors"
    write_bfloat16(path, {"a": np.zeros(1000)})
    sound = file_fault(path)
    path.write_bytes(path.read_bytes()[:-100])

    assert sound is None
    assert "describes" in str(file_fault(path))
