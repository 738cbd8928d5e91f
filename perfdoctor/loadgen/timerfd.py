"""A Linux timer that is a file descriptor: it becomes readable at an instant of CLOCK_MONOTONIC.

So an event loop waits for it as it waits for a socket, without the whole milliseconds of the loop's own
timers. os.timerfd_create needs Python 3.13, hence ctypes.
"""

from __future__ import annotations

import ctypes
import os
import time

_NONBLOCK_CLOEXEC = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
_ABSOLUTE = 1  # TFD_TIMER_ABSTIME


class _Timespec(ctypes.Structure):
    _fields_ = (("s", ctypes.c_long), ("ns", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Timerfd:
    """One timer. Raises OSError where the kernel has none or perf_counter is another clock."""

    def __init__(self) -> None:
        if time.get_clock_info("perf_counter").implementation != "clock_gettime(CLOCK_MONOTONIC)":
            raise OSError("perf_counter is not CLOCK_MONOTONIC")
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "timerfd_create"):
            raise OSError("no timerfd on this system")
        self._settime = libc.timerfd_settime
        self.fd: int = libc.timerfd_create(time.CLOCK_MONOTONIC, _NONBLOCK_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def arm(self, at_ns: int, every_ns: int = 0) -> None:
        """Readable at `at_ns` of perf_counter_ns, then every `every_ns`; what is past is due at once."""
        spec = _Itimerspec(_Timespec(*divmod(every_ns, 10**9)), _Timespec(*divmod(max(1, at_ns), 10**9)))
        if self._settime(self.fd, _ABSOLUTE, ctypes.byref(spec), None):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def expirations(self) -> int:
        """How often it has become due since it was last asked."""
        try:
            return int.from_bytes(os.read(self.fd, 8), "little")
        except BlockingIOError:
            return 0

    def close(self) -> None:
        os.close(self.fd)


def open_timerfd() -> Timerfd | None:
    """None where there is no such timer."""
    try:
        return Timerfd()
    except OSError:
        return None
