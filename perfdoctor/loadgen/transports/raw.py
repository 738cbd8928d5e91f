"""The load generator's own HTTP/1.1 client: plain, TLS and unix sockets, one callback for each read.

About two thirds of the cost of a general client for each streamed token, and stamps that no queue of tasks
can delay. Redirects are results, bodies are asked for uncompressed, environment proxies are ignored. A
kept-alive connection that turns out to be dead before the answer began is redialled once: some servers
announce keep-alive and close after every stream, which is no error of the next request. Where that happens
every time, connections are no longer reused, and each request pays for its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from perfdoctor import __version__
from perfdoctor.errors import UsageError
from perfdoctor.loadgen.transports._connection import Connection, Died
from perfdoctor.loadgen.transports._dialler import Dialler
from perfdoctor.loadgen.transports._tls import make_context
from perfdoctor.loadgen.transports._transport import Dial, Failure, Request, Sink
from perfdoctor.model import Load, Wire

DEAD_IN_A_ROW = 3  # kept-alive connections, none usable in between: this server keeps none alive


class RawTransport:
    """Connections are taken from the top of a stack: the most recent one is the least likely to be dead."""

    name = "raw"

    def __init__(self, origin: str, headers: Mapping[str, str], wire: Wire, load: Load) -> None:
        parts = urlsplit(origin)
        secure = parts.scheme == "https"
        self._dialler = Dialler(
            parts.hostname or "",
            parts.port or (443 if secure else 80),
            make_context(wire) if secure else None,
            wire.unix_socket,
            min(load.connect_timeout_s, load.timeout_s),
        )
        self._idle_s = load.idle_timeout_s
        self._head = _constant_head(parts.netloc.rpartition("@")[2], headers)
        self._idle: list[Connection] = []
        self._dead = 0  # in a row

    @property
    def connections_made(self) -> int:
        return self._dialler.made

    async def open(self) -> None:
        self._dialler.open()

    async def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def send(self, request: Request, sink: Sink, dial: Dial) -> None:
        message = self._message(request)
        bodiless = request.method == "HEAD"
        connection = self._kept()
        if connection:
            dial.reused = True
            try:
                await self._ask(connection, message, sink, dial, bodiless)
            except Died:
                dial.redialled = True
                self._dead += 1
            else:
                self._dead = 0
                return
        connection = await self._dialler.dial(dial)
        try:
            await self._ask(connection, message, sink, dial, bodiless)
        except Died as died:
            raise Failure("reset", str(died)) from died

    async def _ask(
        self, connection: Connection, message: bytes, sink: Sink, dial: Dial, bodiless: bool
    ) -> None:
        try:
            await connection.ask(message, sink, self._idle_s, bodiless)
        finally:
            dial.written_ns = connection.written_ns
        if connection.reusable and self._dead < DEAD_IN_A_ROW:
            self._idle.append(connection)
        else:
            connection.close()

    def _kept(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        return None

    def _message(self, request: Request) -> bytes:
        """The whole request in one piece, so that it leaves in one write."""
        lines = "".join([f"{name}: {value}\r\n" for name, value in request.headers.items()])
        head, body = f"{request.method} {request.path} HTTP/1.1\r\n{self._head}{lines}", request.body
        if body is None:
            return f"{head}\r\n".encode("utf-8", "surrogateescape")
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode("utf-8", "surrogateescape") + body


def _constant_head(host: str, headers: Mapping[str, str]) -> str:
    """The header lines that all requests share; the caller's replace ours whatever their case."""
    ours = {"Host": host, "User-Agent": f"perfdoctor/{__version__}", "Accept-Encoding": "identity"}
    taken = {name.lower() for name in headers}
    lines = {name: value for name, value in ours.items() if name.lower() not in taken} | dict(headers)
    for name, value in lines.items():
        if any(char in name + value for char in "\r\n\0") or not name:
            raise UsageError(
                f"the header {name.split()[0] if name.split() else name!r} is no header line",
                "A line break or an empty name in it would begin another header.",
                "give --header 'NAME: VALUE', without line breaks",
            )
    return "".join(f"{name}: {value}\r\n" for name, value in lines.items())


TRANSPORT = RawTransport
