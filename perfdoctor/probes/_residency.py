"""How much of some files the page cache already holds: what tells a cold load from a warm one."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

CHUNK_BYTES = 256 << 20  # mapped at a time


def resident_share(paths: Iterable[str | Path]) -> float | None:
    """Share of the files' pages in memory, by mincore(2); reads none of them.

    None without files, and for files that are neither ours nor writable: there the kernel claims that all is
    resident. Cross-check: `fincore FILE`.
    """
    resident = pages = 0
    for path in paths:
        counted = _count(Path(path))
        if counted is None:
            return None
        resident, pages = resident + counted[0], pages + counted[1]
    return resident / pages if pages else None


def _count(path: Path) -> tuple[int, int] | None:
    """(pages in memory, pages of the file)."""
    try:
        if path.stat().st_uid != os.geteuid() and not os.access(path, os.W_OK):
            return None
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            parts = [
                _count_chunk(file.fileno(), start, min(CHUNK_BYTES, size - start))
                for start in range(0, size, CHUNK_BYTES)
            ]
    except OSError:
        return None
    return sum(resident for resident, _ in parts), sum(pages for _, pages in parts)


def _count_chunk(descriptor: int, start: int, length: int) -> tuple[int, int]:
    """libc's own mmap, since Python's gives no address of a read-only mapping."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    address = libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, start)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap failed")
    try:
        pages = -(-length // mmap.PAGESIZE)
        flags = ctypes.create_string_buffer(pages)
        if libc.mincore(address, length, flags) != 0:
            raise OSError(ctypes.get_errno(), "mincore failed")
        return sum(flags.raw.translate(_LOW_BIT)), pages
    finally:
        libc.munmap(address, length)


_LOW_BIT = bytes(i & 1 for i in range(256))  # only the lowest bit of a page's byte is defined
