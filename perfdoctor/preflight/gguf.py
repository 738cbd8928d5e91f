"""The header of a GGUF file: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Reads no weights."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from perfdoctor.preflight.weights import Tensor, Weights

# struct letter of each scalar metadata type; 8 is a string, 9 an array
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
COUNT_LIMIT = 10**7  # more entries than any vocabulary: the file is broken
PLAIN = {0: "F32", 1: "F16", 30: "BF16"}  # unquantised ggml types


def measure_gguf(file: Path) -> Weights | None:
    """Sizes of a model in one GGUF file. None when it is none, or one of several parts."""
    try:
        meta, tensors, size = _read(file)
    except (OSError, ValueError, KeyError, struct.error, MemoryError, RecursionError):
        return None
    if not tensors or meta.get("split.count", 0) > 1:
        return None
    untied = any(t.name == "output.weight" for t in tensors)
    read = [t for t in tensors if not (untied and t.name == "token_embd.weight")]
    largest = max(tensors, key=lambda t: t.bytes)
    experts = any("_exps." in t.name for t in tensors)  # which of them a token uses is not worked out here
    return Weights(
        parameters=sum(t.elements for t in tensors),
        dtype={"F32": "float32", "F16": "float16", "BF16": "bfloat16"}.get(largest.type, largest.type),
        weights_bytes=sum(t.bytes for t in tensors),
        file_bytes=size,
        step_bytes=None if experts else sum(t.bytes for t in read),
        step_flops=None if experts else sum(2 * t.elements for t in read),
        kv_bytes_per_token=_kv_bytes(meta),
    )


def _read(file: Path) -> tuple[dict[str, Any], tuple[Tensor, ...], int]:
    size = file.stat().st_size
    with file.open("rb") as stream:
        magic, version, count, pairs = struct.unpack("<4sIQQ", stream.read(24))
        if magic != b"GGUF" or version < 2 or max(count, pairs) > COUNT_LIMIT:
            raise ValueError(f"{file.name} is no GGUF file")
        meta = {_text(stream): _value(stream, _number(stream, "I")) for _ in range(pairs)}
        found = [_entry(stream) for _ in range(count)]
        align = int(meta.get("general.alignment", 32))
        data = -(-stream.tell() // align) * align
    # the header holds offsets, not lengths: a tensor ends where the next begins, padding included
    found.sort(key=lambda entry: entry[3])
    ends = [*(entry[3] for entry in found[1:]), size - data]
    return (
        meta,
        tuple(Tensor(n, e, end - at, t) for (n, e, t, at), end in zip(found, ends, strict=True)),
        size,
    )


def _entry(stream: BinaryIO) -> tuple[str, int, str, int]:
    """(name, elements, type, offset) of the next tensor."""
    name, elements = _text(stream), 1
    for _ in range(_number(stream, "I")):
        elements *= _number(stream, "Q")
    kind = _number(stream, "I")
    return name, elements, PLAIN.get(kind, f"ggml-{kind}"), _number(stream, "Q")


def _value(stream: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return _text(stream)
    if kind == ARRAY:
        inner, count = _number(stream, "I"), _number(stream, "Q")
        if count > COUNT_LIMIT:
            raise ValueError("array too long")
        if inner in SCALARS:
            stream.seek(count * struct.calcsize(SCALARS[inner]), 1)
            return None  # none of the numbers in arrays is needed
        return [_value(stream, inner) for _ in range(count)]
    return _number(stream, SCALARS[kind])


def _number(stream: BinaryIO, letter: str) -> Any:
    return struct.unpack("<" + letter, stream.read(struct.calcsize("<" + letter)))[0]


def _text(stream: BinaryIO) -> str:
    length = _number(stream, "Q")
    if length > 2**24:
        raise ValueError("string too long")
    return stream.read(length).decode("utf-8", "replace")


def _kv_bytes(meta: dict[str, Any]) -> int | None:
    """Key and value of one token in all layers, in the engine's default type f16."""
    arch = meta.get("general.architecture")
    layers, heads = meta.get(f"{arch}.block_count"), meta.get(f"{arch}.attention.head_count")
    kv_heads = meta.get(f"{arch}.attention.head_count_kv", heads)
    width = meta.get(f"{arch}.embedding_length")
    if not layers or not heads or not kv_heads or not width:  # also None where it differs between layers
        return None
    head_dim = meta.get(f"{arch}.attention.key_length") or width // heads
    return 2 * int(layers) * int(kv_heads) * int(head_dim) * 2
