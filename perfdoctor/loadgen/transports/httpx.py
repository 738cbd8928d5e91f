"""HTTP/2, on httpx. Opt-in: it costs many times as much for each event as our own client.

Where HTTP/2 is asked for, nothing else is offered to the server: over TLS by ALPN, over plain TCP by prior
knowledge. One connection carries up to a hundred streams, so most requests wait for no connect.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import httpx

from perfdoctor import __version__
from perfdoctor.errors import UsageError
from perfdoctor.loadgen.transports._machine import limit_reached
from perfdoctor.loadgen.transports._tls import make_context
from perfdoctor.loadgen.transports._transport import HTTP2_PREFIX, TLS_PREFIX, Dial, Failure, Request, Sink
from perfdoctor.model import Load, Wire

TAIL_S = 1.0  # after [DONE]: how long to wait for the end that lets the connection be reused


class HttpxTransport:
    """The connection pool is unbounded: the load decides how much is open at once."""

    name = "httpx"

    def __init__(self, origin: str, headers: Mapping[str, str], wire: Wire, load: Load) -> None:
        if wire.http2:
            _need_h2()
        self._origin, self._wire = origin, wire
        self._headers = {
            "Accept-Encoding": "identity", "User-Agent": f"perfdoctor/{__version__}", **headers,
        }  # fmt: skip
        self._verify = make_context(wire) if origin.startswith("https:") else True
        self._timeout = httpx.Timeout(
            None, connect=min(load.connect_timeout_s, load.timeout_s), read=load.idle_timeout_s
        )
        self.connections_made = 0  # each took a local port, for a minute longer than it lasted

    async def open(self) -> None:
        wire = self._wire
        self._client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(
                verify=self._verify,
                http1=not wire.http2,
                http2=wire.http2,
                proxy=wire.proxy,
                uds=wire.unix_socket,
                trust_env=False,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            ),
            headers=self._headers,
            timeout=self._timeout,
            trust_env=False,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def send(self, request: Request, sink: Sink, dial: Dial) -> None:
        dial.reused = True  # until a connection is seen to be made
        headed = False
        try:
            async with self._client.stream(
                request.method,
                self._origin + request.path,
                content=request.body,
                headers=dict(request.headers),
                extensions={"trace": self._trace(dial)},
            ) as response:
                headed = True
                take = sink.on_head(response.status_code, response.headers, time.perf_counter_ns())
                reads = response.aiter_raw()
                async for read in reads:
                    if take(read, time.perf_counter_ns()):
                        with suppress(asyncio.TimeoutError):  # its end lets the connection be used again
                            await asyncio.wait_for(_drain(reads), TAIL_S)
                        break
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            deaf = self._wire.http2 and not headed and isinstance(error, httpx.RemoteProtocolError)
            raise Failure(outcome_of(error), HTTP2_PREFIX * deaf + describe(error)) from error

    def _trace(self, dial: Dial) -> Any:
        """Fills in a request's Dial from httpcore's own events, such as `connection.connect_tcp.started`."""

        async def note(event: str, info: Mapping[str, Any]) -> None:
            what = event.partition(".")[2]
            if what in ("connect_tcp.started", "connect_unix_socket.started"):
                dial.dialled_ns, dial.reused = time.perf_counter_ns(), False
                self.connections_made += 1
            elif what in ("connect_tcp.complete", "connect_unix_socket.complete"):
                dial.tcp_ns = dial.connected_ns = time.perf_counter_ns()
            elif what == "start_tls.complete":
                dial.connected_ns = time.perf_counter_ns()
            elif what in ("send_request_headers.complete", "send_request_body.complete"):
                dial.written_ns = time.perf_counter_ns()

        return note


async def _drain(reads: AsyncIterator[bytes]) -> None:
    async for _ in reads:
        pass


def outcome_of(error: Exception) -> str:
    """The failure class of an exception that ended a request."""
    if isinstance(
        error,
        (
            httpx.ConnectError,
            httpx.ConnectTimeout,
            httpx.ProxyError,
            httpx.InvalidURL,
            httpx.UnsupportedProtocol,
        ),
    ):
        return "connect"
    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    if isinstance(error, httpx.RemoteProtocolError):
        return _outcome_of_protocol_error(str(error))
    return "reset" if isinstance(error, (httpx.NetworkError, OSError)) else "bad_stream"


def _outcome_of_protocol_error(text: str) -> str:
    """httpx tells these apart only in its message."""
    if "without sending complete message body" in text:
        return "truncated"
    return (
        "reset"
        if "disconnected" in text or "StreamReset" in text or "ConnectionTerminated" in text
        else "bad_stream"
    )


def describe(error: Exception) -> str:
    """What the exception says, marked when TLS is what failed; the system's own error where there is one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return TLS_PREFIX + str(cause)
        if isinstance(cause, OSError) and (limit := limit_reached(cause)):
            return limit
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


def _need_h2() -> None:
    try:
        import h2  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "--http2 needs the library `h2`, which is not installed",
            "It comes with an extra, since the other transports speak HTTP/1.1.",
            "pip install 'perfdoctor[http2]'",
        ) from error


TRANSPORT = HttpxTransport
