"""HTTP/1.1 on aiohttp, for proxies and systems that our own client does not know.

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
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import aiohttp

from perfdoctor import __version__
from perfdoctor.loadgen.transports._machine import limit_reached
from perfdoctor.loadgen.transports._tls import make_context
from perfdoctor.loadgen.transports._transport import TLS_PREFIX, Dial, Failure, Request, Sink, Take
from perfdoctor.model import Load, Wire

READ_BUFFER_BYTES = 2**20  # aiohttp stops reading the socket above twice this
HEADER_BYTES = 2**17  # of one header line; gateways send tokens and policies beyond aiohttp's 8 KiB
DEAD_IN_A_ROW = 3  # kept-alive connections, none usable in between: this server keeps none alive
TAIL_S = 1.0  # after [DONE]: how long to wait for the end that lets the connection be reused


class AiohttpTransport:
    """Each user has one request open, so the users are the connection limit."""

    name = "aiohttp"

    def __init__(self, origin: str, headers: Mapping[str, str], wire: Wire, load: Load) -> None:
        self._origin, self._headers, self._wire = origin, dict(headers), wire
        self._timeout = aiohttp.ClientTimeout(
            total=None,
            sock_connect=min(load.connect_timeout_s, load.timeout_s),
            sock_read=load.idle_timeout_s,
        )
        self._tls = make_context(wire) if origin.startswith("https:") else None
        self._dead = 0  # in a row
        self.connections_made = 0  # each took a local port, for a minute longer than it lasted

    async def open(self) -> None:
        self._pooled = self._session(force_close=False)
        self._fresh = self._session(force_close=True)

    async def close(self) -> None:
        await self._pooled.close()
        await self._fresh.close()

    async def send(self, request: Request, sink: Sink, dial: Dial) -> None:
        try:
            async with self._post(request, dial) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                take = sink.on_head(response.status, headers, time.perf_counter_ns())
                await _read(response.content, take)
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:
            raise Failure(outcome_of(error), describe(error)) from error

    @asynccontextmanager
    async def _post(self, request: Request, dial: Dial) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response, once its headers are here."""
        session = self._pooled if self._dead < DEAD_IN_A_ROW else self._fresh
        try:
            response = await self._send(session, request, dial)
        except aiohttp.ClientConnectionError as error:
            if not dial.reused or isinstance(error, (aiohttp.ClientConnectorError, asyncio.TimeoutError)):
                raise
            dial.redialled = True
            self._dead += 1
            response = await self._send(self._fresh, request, dial)
        else:
            if dial.reused:
                self._dead = 0
        async with response:
            with _body_ends_with_connection(response):
                yield response

    async def _send(
        self, session: aiohttp.ClientSession, request: Request, dial: Dial
    ) -> aiohttp.ClientResponse:
        return await session.request(
            request.method,
            self._origin + request.path,
            data=request.body,
            headers=request.headers,
            trace_request_ctx=dial,
            allow_redirects=False,
            proxy=self._wire.proxy,
            ssl=self._tls or True,
        )

    def _session(self, force_close: bool) -> aiohttp.ClientSession:
        path = self._wire.unix_socket
        make = aiohttp.TCPConnector if path is None else partial(aiohttp.UnixConnector, path)
        return aiohttp.ClientSession(
            connector=make(limit=0, force_close=force_close),
            headers={
                "Accept-Encoding": "identity",
                "User-Agent": f"perfdoctor/{__version__}",
                **self._headers,
            },
            timeout=self._timeout,
            auto_decompress=False,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER_BYTES,
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
            trace_configs=[self._trace()],
        )

    def _trace(self) -> aiohttp.TraceConfig:
        """Fills in a request's Dial. aiohttp does not tell when TCP stood and TLS began."""
        trace = aiohttp.TraceConfig()

        async def dialled(session: aiohttp.ClientSession, context: SimpleNamespace, params: Any) -> None:
            context.trace_request_ctx.dialled_ns = time.perf_counter_ns()
            self.connections_made += 1

        async def connected(session: aiohttp.ClientSession, context: SimpleNamespace, params: Any) -> None:
            context.trace_request_ctx.connected_ns = time.perf_counter_ns()

        async def reused(session: aiohttp.ClientSession, context: SimpleNamespace, params: Any) -> None:
            context.trace_request_ctx.reused = True

        async def written(session: aiohttp.ClientSession, context: SimpleNamespace, params: Any) -> None:
            context.trace_request_ctx.written_ns = time.perf_counter_ns()

        trace.on_connection_create_start.append(dialled)
        trace.on_connection_create_end.append(connected)
        trace.on_connection_reuseconn.append(reused)
        trace.on_request_headers_sent.append(written)
        trace.on_request_chunk_sent.append(written)
        return trace


async def _read(content: aiohttp.StreamReader, take: Take) -> None:
    """To the end; or as far as it is wanted, and a little further, so that the connection can be reused."""
    while read := await content.readany():
        if take(read, time.perf_counter_ns()):
            break
    if not content.at_eof():
        with suppress(asyncio.TimeoutError):  # the connection is closed then, not reused
            await asyncio.wait_for(content.readany(), TAIL_S)


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
    if isinstance(error, _NO_CONNECTION):
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
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientResponseError):  # no HTTP came back
        return " ".join(error.message.split()).removesuffix(" ^")  # without aiohttp's pointer into the bytes
    if isinstance(error, aiohttp.ClientConnectorError) and (limit := limit_reached(error.os_error)):
        return limit
    text = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, _DURING_HANDSHAKE):
        return TLS_PREFIX + "the connection was closed during the handshake"
    return TLS_PREFIX + text if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)) else text


_NO_CONNECTION = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    ssl.SSLError,
)
# a plain connect is refused or times out; only a handshake can be cut off after it
_DURING_HANDSHAKE = (ConnectionResetError, ConnectionAbortedError)


TRANSPORT = AiohttpTransport
