"""Files that appear whole or not at all, and what the system says when it cannot write them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from perfdoctor.errors import DiskFull

_WHY = {
    errno.ENOSPC: "The disk is full.",
    errno.EDQUOT: "The disk quota is used up.",
    errno.EROFS: "The file system is read-only.",
    errno.ENOENT: "The folder, or the one this command was started in, was removed.",
    errno.ENOTDIR: "A part of the path is a file, not a folder.",
    errno.ENAMETOOLONG: "The name is longer than the file system allows.",
}
_DO_FREE = "free some space or choose another folder with --out; what was written stays readable"
_DO = {errno.ENOSPC: _DO_FREE, errno.EDQUOT: _DO_FREE}


def write_atomically(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Replace a file so that a reader sees the old or the new one, never a part."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    with disk_errors(path.parent):
        try:
            with temporary.open("wb") as file:
                file.writelines((content,) if isinstance(content, bytes) else content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def claim(folder: Path) -> contextlib.ExitStack:
    """Mark a folder as being written to until the stack is left or this process ends.

    A lock on the folder itself: nothing is left behind, and nothing happens where the file system has none.
    """
    held = contextlib.ExitStack()
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        held.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return held


def is_claimed(folder: Path) -> bool:
    """Whether another process, or another part of this one, writes to it now."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        raise DiskFull(
            f"cannot write to {path}: {os.strerror(number)}",
            _WHY.get(number, "The folder cannot be written by this user."),
            _DO.get(number, "choose another place with --out"),
        ) from error
