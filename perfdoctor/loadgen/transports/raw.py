"""The load generator's own HTTP/1.1 client: plain, TLS and unix sockets, one callback for each read.

About a third of the cost of a general client for each streamed token, and stamps that no queue of tasks can
delay. Redirects are results, bodies are asked for uncompressed, environment proxies are ignored. A kept-alive
connection that turns out to be dead before the answer began is redialled once: some servers announce
keep-alive and close after every stream, which is no error of the next request. Where that happens every time,
connections are no longer reused, and each request pays for its own.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from perfdoctor import __version__
from perfdoctor.loadgen.time_limit import TimeLimits
from perfdoctor.loadgen.transports._connection import Connection, Died
from perfdoctor.loadgen.transports._machine import limit_reached
from perfdoctor.loadgen.transports._tls import make_context
from perfdoctor.loadgen.transports._transport import TLS_PREFIX, Dial, Failure, Request, Sink
from perfdoctor.model import Load, Wire

DEAD_IN_A_ROW = 3  # kept-alive connections, none usable in between: this server keeps none alive
DIALS = 128  # at a time: a burst of connects overruns a server's accept queue and looks like its slowness
TAIL_S = 1.0  # after [DONE]: how long to wait for the end that lets the connection be reused
NAME_S = 60.0  # how long a resolved name is believed

Address = tuple[socket.AddressFamily, tuple[object, ...]]


class RawTransport:
    """Connections are taken from the top of a stack: the most recent one is the least likely to be dead."""

    name = "raw"

    def __init__(self, origin: str, headers: Mapping[str, str], wire: Wire, load: Load) -> None:
        parts = urlsplit(origin)
        self._host, self._secure = parts.hostname or "", parts.scheme == "https"
        self._port = parts.port or (443 if self._secure else 80)
        self._unix, self._idle_s = wire.unix_socket, load.idle_timeout_s
        self._connecting = TimeLimits(min(load.connect_timeout_s, load.timeout_s))
        self._tls = make_context(wire) if self._secure else None
        self._head = _constant_head(parts.netloc, headers)
        self._idle: list[Connection] = []
        self._dead = 0  # in a row
        self.connections_made = 0  # each took a local port, for a minute longer than it lasted
        self._addresses: list[Address] = []
        self._resolved_s = float("-inf")

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._dials = asyncio.Semaphore(DIALS)

    async def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def send(self, request: Request, sink: Sink, dial: Dial) -> None:
        message = self._message(request)
        connection = self._kept()
        if connection:
            dial.reused = True
            try:
                await self._ask(connection, message, sink, dial)
            except Died:
                dial.redialled = True
                self._dead += 1
            else:
                self._dead = 0
                return
        connection = await self._dialled(dial)
        try:
            await self._ask(connection, message, sink, dial)
        except Died as died:
            raise Failure("reset", str(died)) from died

    async def _ask(self, connection: Connection, message: bytes, sink: Sink, dial: Dial) -> None:
        try:
            await connection.ask(message, sink, self._idle_s, TAIL_S)
        finally:
            dial.written_ns = connection.written_ns or None
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
        lines = [f"{request.method} {request.path} HTTP/1.1\r\n".encode(), self._head]
        lines += [f"{name}: {value}\r\n".encode() for name, value in request.headers.items()]
        if request.body is not None:
            lines += [b"Content-Length: %d\r\n\r\n" % len(request.body), request.body]
        else:
            lines.append(b"\r\n")
        return b"".join(lines)

    # -- connecting

    async def _dialled(self, dial: Dial) -> Connection:
        async with self._dials:
            dial.dialled_ns = time.perf_counter_ns()
            try:
                with self._connecting.start():
                    return await self._connect(dial)
            except asyncio.TimeoutError as error:
                why = f"no connection within {self._connecting.seconds:g} s (timeout)"
                raise Failure("connect", why) from error
            except ssl.SSLError as error:
                raise Failure("connect", TLS_PREFIX + str(error)) from error
            except OSError as error:
                raise Failure("connect", self._describe(error, dial)) from error

    async def _connect(self, dial: Dial) -> Connection:
        found = await self._socket()
        dial.tcp_ns = time.perf_counter_ns()
        self.connections_made += 1
        try:
            name = self._host if self._tls else None
            _, connection = await self._loop.create_connection(
                Connection, sock=found, ssl=self._tls, server_hostname=name
            )
        except BaseException:
            found.close()
            raise
        dial.connected_ns = time.perf_counter_ns()
        return connection

    async def _socket(self) -> socket.socket:
        """Connected, to the first address that accepts; the last one's error when none does."""
        if self._unix:
            return await self._reach((socket.AF_UNIX, (self._unix,)))
        failure: OSError = OSError(f"the name {self._host} has no address")
        for address in await self._resolve():
            try:
                return await self._reach(address)
            except OSError as error:
                failure = error
        raise failure

    async def _reach(self, address: Address) -> socket.socket:
        family, place = address
        found = socket.socket(family, socket.SOCK_STREAM)
        try:
            found.setblocking(False)
            if family != socket.AF_UNIX:
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.sock_connect(found, place[0] if family == socket.AF_UNIX else place)  # type: ignore[arg-type]
        except BaseException:
            found.close()
            raise
        return found

    async def _resolve(self) -> list[Address]:
        if self._loop.time() - self._resolved_s > NAME_S:
            found = await self._loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            self._addresses = [(family, place) for family, _, _, _, place in found]
            self._resolved_s = self._loop.time()
        return self._addresses

    def _describe(self, error: OSError, dial: Dial) -> str:
        """What the system said, with the name of the setting where this machine is the limit."""
        if limit := limit_reached(error):
            return limit
        text = str(error) or type(error).__name__
        handshake = self._tls is not None and dial.tcp_ns is not None
        return TLS_PREFIX + "the connection was closed during the handshake" if handshake else text


def _constant_head(host: str, headers: Mapping[str, str]) -> bytes:
    """The header lines that all requests share; the caller's replace ours whatever their case."""
    ours = {"Host": host, "User-Agent": f"perfdoctor/{__version__}", "Accept-Encoding": "identity"}
    taken = {name.lower() for name in headers}
    lines = {name: value for name, value in ours.items() if name.lower() not in taken} | dict(headers)
    return "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode("latin-1")


TRANSPORT = RawTransport
