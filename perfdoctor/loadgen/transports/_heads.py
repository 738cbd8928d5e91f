"""The head that a server's last whole answer had, so that the next answer like it need not be parsed.

A head of the same bytes means the same, and a read of the same head and exactly as many bytes as its
Content-Length says is one whole answer: nothing is left to parse. All connections to a server share this.
"""

from __future__ import annotations

from collections.abc import Mapping


class Head:
    """`size` bytes of head, blank line included."""

    __slots__ = ("headers", "size", "status")

    def __init__(self, size: int, status: int, headers: Mapping[str, str]) -> None:
        self.size, self.status, self.headers = size, status, headers


class Heads:
    """Keeps the last head only: what changes from answer to answer, as a date does, is learnt anew."""

    __slots__ = ("_head", "_known", "_total")

    def __init__(self) -> None:
        self._head = b"\0"  # begins no answer
        self._total = 0  # bytes of the answer
        self._known: Head | None = None

    def match(self, read: bytes) -> Head | None:
        """The head of a read that is one whole answer."""
        return self._known if len(read) == self._total and read.startswith(self._head) else None

    def learn(self, read: bytes, body_bytes: int, status: int, headers: Mapping[str, str]) -> None:
        """From a read that the parser found to be one whole answer, its body in one piece at its end."""
        size = len(read) - body_bytes
        if headers.get("content-length") != str(body_bytes) or read[size - 4 : size] != b"\r\n\r\n":
            return
        self._head, self._total = read[:size], len(read)
        self._known = Head(size, status, headers)
