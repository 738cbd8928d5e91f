"""Server-sent events from bytes: an incremental parser of `data` payloads, and nothing else.

Follows the event-stream grammar of the HTML standard, because servers use all of it: lines end in LF, CR or
CRLF (also split over two reads), one BOM may lead, comments and unknown fields are skipped, the space after
the colon is optional, several `data` lines of one event are joined by LF. One deliberate difference: an event
that the end of the stream cuts off is still delivered, since some servers omit the last blank line.

Works on bytes: `str.splitlines` also breaks at U+2028 and U+0085, which are legal inside JSON.
"""

from __future__ import annotations

BOM = b"\xef\xbb\xbf"
MAX_EVENT_BYTES = 16 * 2**20


class EventTooLong(ValueError):
    """One event exceeds 16 MiB: this is no token stream."""


class SseParser:
    """Feed it reads in order; it returns the data of every event that became complete."""

    __slots__ = ("_at_start", "_data", "_partial", "_partial_bytes", "_skip_lf", "idle")

    def __init__(self) -> None:
        self._at_start = True  # a BOM may still come
        self._skip_lf = False  # the last read ended in CR: a leading LF belongs to it
        self._partial: list[bytes] = []  # pieces of a line whose end has not come
        self._partial_bytes = 0  # of the open line and the open event together
        self._data: list[bytes] = []  # `data` lines of the open event
        self.idle = False  # nothing is open: the next read starts afresh. False before the first line

    def feed(self, read: bytes) -> list[bytes]:
        # Nearly every read of a token stream is one whole event: a third of the cost.
        if (
            self.idle
            and read[:6] == b"data: "
            and read[-2:] == b"\n\n"
            and read.find(b"\n") == len(read) - 2
            and b"\r" not in read
        ):
            return [read[6:-2]]
        return self._feed_any(read)

    def close(self) -> list[bytes]:
        """What the end of the stream completes."""
        events: list[bytes] = []
        if self._partial:
            self._line(b"".join(self._partial), events)
        self._line(b"", events)
        self._partial, self._partial_bytes = [], 0
        return events

    def _feed_any(self, read: bytes) -> list[bytes]:
        if not read:
            return []
        if self._skip_lf and read[0] == 0x0A:
            read = read[1:]
        self._skip_lf = read.endswith(b"\r") if read else False
        if b"\r" in read:
            read = read.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        events: list[bytes] = []
        first, *rest = read.split(b"\n")
        self._hold(first)
        for piece in rest:
            self._line(b"".join(self._partial), events)
            self._partial = []
            self._hold(piece)
        self.idle = not self._data and not self._partial and not self._skip_lf
        return events

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._partial.append(piece)
            self._partial_bytes += len(piece)
            if self._partial_bytes > MAX_EVENT_BYTES:
                raise EventTooLong(f"an event longer than {MAX_EVENT_BYTES // 2**20} MiB")

    def _line(self, line: bytes, events: list[bytes]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(BOM)
        if not line:
            if self._data:
                events.append(b"\n".join(self._data))
                self._data = []
            self._partial_bytes = 0
        elif line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            self._data.append(b"")
        else:
            self._partial_bytes -= len(line)  # not kept: endless keep-alive comments are no long event
