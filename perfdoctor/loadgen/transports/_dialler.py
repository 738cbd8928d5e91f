"""Makes connections: names, addresses, TLS, unix sockets, and not too many dials at a time."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time

from perfdoctor.loadgen.time_limit import TimeLimits
from perfdoctor.loadgen.transports._connection import Connection
from perfdoctor.loadgen.transports._heads import Heads
from perfdoctor.loadgen.transports._machine import limit_reached
from perfdoctor.loadgen.transports._transport import TLS_PREFIX, Dial, Failure

DIALS = 128  # at a time: a burst of connects overruns a server's accept queue and looks like its slowness
NAME_S = 60.0  # how long a resolved name is believed

Address = tuple[socket.AddressFamily, tuple[object, ...]]


class Dialler:
    """Of one server. `tls` None: plain. `unix_socket`: a path, in place of host and port."""

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None, unix_socket: str | None, limit_s: float
    ) -> None:
        self._host, self._port, self._tls, self._unix_socket = host, port, tls, unix_socket
        self._limits = TimeLimits(limit_s)
        self._heads = Heads()
        self._addresses: list[Address] = []
        self._resolved_s = float("-inf")
        self.made = 0  # connections; each took a local port, for a minute longer than it lasted

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._places = asyncio.Semaphore(DIALS)
        self._resolving = asyncio.Lock()

    async def dial(self, dial: Dial) -> Connection:
        """A new connection. Raises Failure."""
        async with self._places:
            dial.dialled_ns = time.perf_counter_ns()
            try:
                with self._limits.start():
                    return await self._connect(dial)
            except asyncio.TimeoutError as error:
                why = f"no connection within {self._limits.seconds:g} s (timeout)"
                raise Failure("connect", why) from error
            except ssl.SSLError as error:
                raise Failure("connect", TLS_PREFIX + str(error)) from error
            except OSError as error:
                raise Failure("connect", self._describe(error, dial)) from error

    async def _connect(self, dial: Dial) -> Connection:
        found = await self._socket()
        dial.tcp_ns = time.perf_counter_ns()
        self.made += 1
        try:
            name = self._host if self._tls else None
            _, connection = await self._loop.create_connection(
                lambda: Connection(self._heads), sock=found, ssl=self._tls, server_hostname=name
            )
        except BaseException:
            found.close()
            raise
        dial.connected_ns = time.perf_counter_ns()
        if self._tls is None:
            dial.tcp_ns = dial.connected_ns  # no handshake: nothing is between the two
        return connection

    async def _socket(self) -> socket.socket:
        """Connected, to the first address that accepts; the last one's error when none does.

        That address is tried first from then on: where `localhost` means ::1 and 127.0.0.1, servers often
        listen on one of them.
        """
        if self._unix_socket:
            return await self._reach((socket.AF_UNIX, (self._unix_socket,)))
        failure: OSError = OSError(f"the name {self._host} has no address")
        for address in await self._resolve():
            try:
                found = await self._reach(address)
            except OSError as error:
                if limit_reached(error):
                    raise
                failure = error
                continue
            if address != self._addresses[0]:
                self._addresses = [address, *(other for other in self._addresses if other != address)]
            return found
        self._resolved_s = float("-inf")  # the name may have moved
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
        """One look-up for all who wait for it."""
        async with self._resolving:
            if self._loop.time() - self._resolved_s > NAME_S:
                found = await self._loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                self._addresses = [(family, place) for family, _, _, _, place in found]
                self._resolved_s = self._loop.time()
        return self._addresses

    def _describe(self, error: OSError, dial: Dial) -> str:
        """What the system said, with the name of the setting where this machine is the limit."""
        if limit := limit_reached(error):
            return limit
        if self._tls is not None and dial.tcp_ns is not None:
            return TLS_PREFIX + "the connection was closed during the handshake"
        return str(error) or type(error).__name__
