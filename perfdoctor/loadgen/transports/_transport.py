"""What every transport offers, what it is given, and how a request reached the server.

A transport pushes: the answer's head and body go to a `Sink` the moment they are read, stamped before they
are looked at, on the event loop's thread. So the fastest of them can read in the loop's own callback, without
waking a task for each chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol as Interface

import msgspec

TLS_PREFIX = "TLS: "  # marks an error text, so that the reason survives in the record
HTTP2_PREFIX = "HTTP/2: "  # the same: what was spoken was not understood


class Failure(Exception):
    """What ended a request, mapped once at the transport's edge: `outcome` is a failure class, design 6."""

    def __init__(self, outcome: str, why: str) -> None:
        super().__init__(why)
        self.outcome, self.why = outcome, why


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request under the transport's root. `headers` are those that differ from request to request."""

    method: str
    path: str  # with the query, if any
    headers: dict[str, str] = {}
    body: bytes | None = None


class Dial:
    """How one request reached the server; filled in by the transport. Stamps are raw perf_counter_ns."""

    dialled_ns: int | None = None  # None, as the two after it, on a kept-alive connection
    tcp_ns: int | None = None
    connected_ns: int | None = None
    written_ns: int | None = None
    reused = False
    redialled = False


# Takes a piece of the body, its framing removed, and its stamp. True: nothing more is wanted of it.
Take = Callable[[bytes, int], bool]


class Sink(Interface):
    """Takes one answer in."""

    def on_head(self, status: int, headers: Mapping[str, str], at_ns: int) -> Take:
        """Called once, with header names in lower case. Returns what takes the body."""


class Transport(Interface):
    """Sends requests to one server, each on a connection of its own until the answer is complete."""

    name: str

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def send(self, request: Request, sink: Sink, dial: Dial) -> None:
        """Return when the body is complete or no longer wanted. Raises Failure; cancellation passes."""
