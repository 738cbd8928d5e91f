"""HTTP/1.1 for streams, on aiohttp: connections, one redial, and the mapping of its exceptions to outcomes.

Environment proxies are ignored (they coalesce chunks), redirects are results, TLS is verified, and bodies are
asked for uncompressed. A kept-alive connection that turns out to be dead before the response began is
redialled once: llama.cpp announces keep-alive and closes after every stream, no error of the next request.
Where that happens every time, connections are no longer reused, and each request pays for its own.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp

from perfdoctor import __version__

CONNECT_TIMEOUT_S = 10.0  # dropped packets would otherwise take the kernel's two minutes
READ_BUFFER_BYTES = 2**20  # aiohttp stops reading the socket above twice this
DEAD_IN_A_ROW = 3  # kept-alive connections, none usable in between: this server keeps none alive
TLS_PREFIX = "TLS: "  # marks an error text, so that the reason survives in the record


class Dial:
    """How one request reached the server; filled in by the connection pool."""

    __slots__ = ("connected_ns", "redialled", "reused")

    def __init__(self) -> None:
        self.connected_ns: int | None = None  # None on a kept-alive connection
        self.reused = False
        self.redialled = False


class Transport:
    """Posts JSON bodies to one URL. Each user has one request open, so the users are the connection limit."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        self._url = url
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._dead = 0  # in a row

    async def open(self) -> None:
        self._pooled = self._session(force_close=False)
        self._fresh = self._session(force_close=True)

    async def close(self) -> None:
        await self._pooled.close()
        await self._fresh.close()

    @asynccontextmanager
    async def post(
        self, body: bytes, headers: Mapping[str, str], dial: Dial
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response, once its headers are here."""
        session = self._pooled if self._dead < DEAD_IN_A_ROW else self._fresh
        try:
            response = await self._send(session, body, headers, dial)
        except aiohttp.ClientConnectionError as error:
            if not dial.reused or isinstance(error, (aiohttp.ClientConnectorError, asyncio.TimeoutError)):
                raise
            dial.redialled = True
            self._dead += 1
            response = await self._send(self._fresh, body, headers, dial)
        else:
            if dial.reused:
                self._dead = 0
        async with response:
            with _body_ends_with_connection(response):
                yield response

    async def _send(
        self, session: aiohttp.ClientSession, body: bytes, headers: Mapping[str, str], dial: Dial
    ) -> aiohttp.ClientResponse:
        return await session.post(
            self._url, data=body, headers=headers, trace_request_ctx=dial, allow_redirects=False
        )

    def _session(self, force_close: bool) -> aiohttp.ClientSession:
        connect_s = min(CONNECT_TIMEOUT_S, self._timeout_s)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=force_close),
            headers={
                "Content-Type": "application/json",
                "Accept": "text/event-stream",
                "Accept-Encoding": "identity",
                "User-Agent": f"perfdoctor/{__version__}",
                **self._headers,
            },
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_s),
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER_BYTES,
            trace_configs=[_connection_trace()],
        )


def _connection_trace() -> aiohttp.TraceConfig:
    trace = aiohttp.TraceConfig()

    async def connected(session: aiohttp.ClientSession, context: SimpleNamespace, params: Any) -> None:
        context.trace_request_ctx.connected_ns = time.perf_counter_ns()

    async def reused(session: aiohttp.ClientSession, context: SimpleNamespace, params: Any) -> None:
        context.trace_request_ctx.reused = True

    trace.on_connection_create_end.append(connected)
    trace.on_connection_reuseconn.append(reused)
    return trace


@contextmanager
def _body_ends_with_connection(response: aiohttp.ClientResponse) -> Iterator[None]:
    """Tell the reader of a body when its connection is gone.

    aiohttp (seen in 3.14) forgets to after broken chunk framing; the reader would wait for the time limit.
    """
    connection, content = response.connection, response.content
    # no connection: the body is complete already; no `closed`: an aiohttp before 3.12
    closed = getattr(connection.protocol, "closed", None) if connection else None

    def on_closed(future: asyncio.Future[None]) -> None:
        if not future.cancelled():
            future.exception()  # else asyncio complains that nobody looked
        if not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError("the body's framing is broken"))

    if closed is None:
        yield
        return
    closed.add_done_callback(on_closed)
    try:
        yield
    finally:
        closed.remove_done_callback(on_closed)


def outcome_of(error: Exception) -> str:
    """The failure class of an exception that ended a request."""
    if isinstance(
        error,
        (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL, ssl.SSLError),
    ):
        return "connect"
    if isinstance(error, asyncio.TimeoutError):
        return "timeout"
    if isinstance(error, aiohttp.ClientPayloadError):
        return _outcome_of_payload_error(str(error))
    if isinstance(error, (OSError, aiohttp.ClientConnectionError)):
        return "reset"
    return "bad_stream"


def _outcome_of_payload_error(text: str) -> str:
    """aiohttp tells a reset, a missing end and broken chunk framing apart only in its message."""
    if "ConnectionReset" in text or "Connection reset" in text:
        return "reset"
    return "truncated" if "Not enough data" in text else "bad_stream"


def describe(error: Exception) -> str:
    """What the exception says, marked when TLS is what failed; some carry no message but their name."""
    if isinstance(error, aiohttp.ClientResponseError):  # no HTTP came back
        return " ".join(error.message.split()).removesuffix(" ^")  # without aiohttp's pointer into the bytes
    text = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, _DURING_HANDSHAKE):
        return TLS_PREFIX + "the connection was closed during the handshake"
    return TLS_PREFIX + text if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)) else text


# a plain connect is refused or times out; only a handshake can be cut off after it
_DURING_HANDSHAKE = (ConnectionResetError, ConnectionAbortedError)


def completion_url(endpoint: str, path: str) -> str:
    """Where to post, from an endpoint with or without `/v1`, or with the whole path already."""
    parts = urlsplit(endpoint)
    base = parts.path.rstrip("/").removesuffix(path).removesuffix("/v1")
    return urlunsplit((parts.scheme, parts.netloc, base + "/v1" + path, parts.query, ""))
