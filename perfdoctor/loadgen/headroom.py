"""Descriptors and local ports: what a client runs out of before a server does.

Both are checked before the first request and watched during the load. A connection costs one of each; one
that we closed keeps its port for a minute more (TIME_WAIT).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Sized
from pathlib import Path

import msgspec

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.transports._transport import Transport
from perfdoctor.model import ClientFacts, Load, Target

RESERVE = 100  # descriptors for everything but connections: the log, the probes, the event loop
UNBOUNDED = 65_536  # descriptors that an open loop without a cap is given, if it may have them
PERIOD_S = 1.0
TIME_WAIT_S = 60  # fixed in Linux (TCP_TIMEWAIT_LEN)
_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def make_room(load: Load, target: Target) -> None:
    """Raise this process's soft limit of descriptors as far as the load needs it.

    Raises UsageError when the load cannot fit.
    """
    connections = load.concurrency if load.arrival == "closed" else load.max_in_flight
    ports = None if target.wire.unix_socket else ephemeral_ports()
    if connections and ports and connections > ports:
        raise UsageError(
            f"{connections} connections at once need as many local ports, and there are {ports}",
            f"The kernel picks them from {_PORT_RANGE}.",
            'ask for fewer, or widen it: sysctl net.ipv4.ip_local_port_range="1024 65535"',
        )
    _raise_fd_limit((connections or UNBOUNDED) + RESERVE, must=connections is not None)


def _raise_fd_limit(need: int, must: bool) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    infinite = resource.RLIM_INFINITY
    if soft == infinite or soft >= need:
        return
    if must and hard != infinite and hard < need:
        raise UsageError(
            f"this load needs {need} open files, and this process may have {hard}",
            "Each connection is one; the hard limit is set by the shell, the service or the container.",
            f"ask for fewer at once, or raise it as root: ulimit -Hn {need} (LimitNOFILE= of a service, "
            "--ulimit nofile= of a container)",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (need if hard == infinite else min(need, hard), hard))


def fds_open() -> int | None:
    """Descriptors of this process; None where /proc does not tell."""
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # noqa: PTH208 - no path objects for ten thousand
    except OSError:
        return None


def fds_limit() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def ephemeral_ports() -> int | None:
    """How many local ports the kernel gives to connections to one address; None: not known here."""
    try:
        low, high = map(int, _PORT_RANGE.read_text().split())
    except (OSError, ValueError):
        return None
    return high - low + 1


class Headroom:
    """How much of both is used at most while `open_now` holds the requests that are open."""

    def __init__(self, transport: Transport, open_now: Sized, unix_socket: bool = False) -> None:
        self._transport, self._open_now = transport, open_now
        self._own_fds = fds_open()
        made = getattr(transport, "connections_made", None)  # None: it does not count them
        self._ports = None if made is None or unix_socket else PortUse(made)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._look()
        self._timer = loop.call_later(PERIOD_S, self.start, loop)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        if self._ports:
            self._ports.note(getattr(self._transport, "connections_made", 0), len(self._open_now))

    def add_to(self, facts: ClientFacts, open_max: int) -> ClientFacts:
        """`open_max`: the most requests that were open at once."""
        self._look()
        return msgspec.structs.replace(
            facts,
            transport=self._transport.name,
            fds_open=None if self._own_fds is None else self._own_fds + open_max,
            fds_limit=fds_limit(),
            ports_used=self._ports.used_max if self._ports else None,
            ports_limit=ephemeral_ports() if self._ports else None,
        )


class PortUse:
    """Local ports in use at most, from a count of connections made that is read once a second.

    An upper bound: a connection that the server closed first leaves no port behind here.
    """

    def __init__(self, made: int) -> None:
        self._history = deque([made], maxlen=TIME_WAIT_S + 1)
        self.used_max = 0

    def note(self, made: int, open_now: int) -> None:
        """The state a second after the last one: connections made so far, and those open now."""
        self._history.append(made)
        self.used_max = max(self.used_max, made - self._history[0], open_now)
