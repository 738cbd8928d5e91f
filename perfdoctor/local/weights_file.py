"""The safetensors container: its header read and checked without reading weights, and a bfloat16 writer.

Layout: 8 bytes little-endian length N, N bytes of JSON {name: {dtype, shape, data_offsets}}, then the data,
to which the offsets are relative. The library's numpy writer knows no bfloat16, hence our own.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

HEADER_LIMIT_BYTES = 100_000_000  # the format's own limit


def header_fault(head: bytes, file_bytes: int) -> str | None:
    """What is wrong with a file of this size that begins like this; None when the sizes agree.

    `head` may be the whole file or just its length field and header.
    """
    if len(head) < 8:
        return f"it has {file_bytes} bytes, too few for a header"
    (length,) = struct.unpack_from("<Q", head)
    if length > HEADER_LIMIT_BYTES or 8 + length > file_bytes:
        return f"its header claims {length} bytes, the file has {file_bytes}"
    try:
        header = json.loads(head[8 : 8 + length])
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        needed = 8 + length + max(ends, default=0)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return "its header is not valid JSON of tensors"
    if needed != file_bytes:
        return f"its header describes {needed} bytes, the file has {file_bytes}"
    return None


def file_fault(path: Path) -> str | None:
    """`header_fault` of a file on disk; reads the header only, so the page cache stays as it was."""
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        head += file.read(min(length, HEADER_LIMIT_BYTES))
    return header_fault(head, path.stat().st_size)


def to_bfloat16(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The upper half of each float32, rounded to nearest even, as uint16. Not for NaN."""
    import numpy as np

    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)


def write_bfloat16(path: Path, tensors: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """All tensors as bfloat16, in the order given."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + 2 * tensor.size
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data starts on a multiple of 8
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for tensor in tensors.values():
            file.write(to_bfloat16(tensor).tobytes())
