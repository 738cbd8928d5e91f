"""What the HTTP library raised, said to the user: what happened, the likely why, the thing to do.

Recognised by exception type and errno, not by message text, which changes between versions.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from perfdoctor.errors import NotOpenai, TargetError, TlsMismatch, Unreachable
from perfdoctor.model import Wire

CONNECT_S = 3.0  # a LAN answers in 1 ms, another continent in 0.3 s
READ_S = 5.0  # a busy single-threaded server may be in the middle of a step


def explain(exc: Exception, root: str, wire: Wire) -> TargetError:
    """The error for an exchange that brought no HTTP answer. `root` is the URL free of secrets."""
    causes = tuple(_causes(exc))
    lost = isinstance(exc, (httpx.ConnectError, httpx.ConnectTimeout))
    if isinstance(exc, httpx.ProxyError) or (lost and wire.proxy):
        return _no_proxy(wire, causes)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return _tls(root, causes)
    if lost:
        return _no_socket(wire, root) if wire.unix_socket else _no_connection(exc, root, causes)
    return not_answered(root) if isinstance(exc, httpx.TimeoutException) else _no_http(root)


def not_answered(root: str) -> Unreachable:
    return Unreachable(
        f"{root} accepts connections but did not answer within {READ_S:.0f} s",
        "The server is stuck, or so busy that it does not come to answer.",
        "look at the server's log, or try again when it is idle",
    )


def port_of(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def speaks_tls(root: str) -> bool:
    """Whether a TLS handshake succeeds there; the certificate is not looked at."""
    parts = urlsplit(root)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((parts.hostname or "", port_of(root)), CONNECT_S) as plain,
            context.wrap_socket(plain, server_hostname=parts.hostname),
        ):
            return True
    except OSError:
        return False


def _causes(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.__cause__ or exc.__context__


def _tls(root: str, causes: tuple[BaseException, ...]) -> TlsMismatch:
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return TlsMismatch(
                f"the certificate of {root} is not trusted here ({cause.verify_message})",
                "It is self-signed, expired, for another name, or of a private authority.",
                "name the authority's file with --ca-file, or do without any check: --insecure",
            )
    return TlsMismatch(
        f"{root} does not speak TLS",
        "https was asked of a port that serves plain HTTP, or of one that shares no TLS version with us.",
        f"use http{root.removeprefix('https')}",
    )


def _no_connection(exc: Exception, root: str, causes: tuple[BaseException, ...]) -> Unreachable:
    host, port = urlsplit(root).hostname or "?", port_of(root)
    check = f"check with: curl -v {root}/v1/models"
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Unreachable(
            f"the host name '{host}' does not resolve",
            "It is misspelt, or known to another network's name server only.",
            f"check with: getent hosts {host}",
        )
    if isinstance(exc, httpx.ConnectTimeout):
        return Unreachable(
            f"{host} port {port} did not accept a connection within {CONNECT_S:.0f} s",
            "A firewall drops the packets, or the host is down.",
            check,
        )
    if any(isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED for cause in causes):
        return Unreachable(
            f"nothing listens on {host} port {port}",
            "The server is not running, still loads its model, or uses another port.",
            check,
        )
    return Unreachable(
        f"{host} port {port} cannot be reached", "There is no route from here to that address.", check
    )


def _no_proxy(wire: Wire, causes: tuple[BaseException, ...]) -> Unreachable:
    said = f"It says: {causes[0]}." if isinstance(causes[0], httpx.ProxyError) else "Nothing answers there."
    return Unreachable(
        f"the proxy {wire.proxy} does not lead to the server",
        said,
        f"check with: curl -v -x {wire.proxy} URL; or leave --proxy out",
    )


def _no_socket(wire: Wire, root: str) -> Unreachable:
    return Unreachable(
        f"nothing listens on the socket {wire.unix_socket}",
        "The server ended and left its file behind, or does not let this user in.",
        f"check with: curl --unix-socket {wire.unix_socket} {root}/v1/models",
    )


def _no_http(root: str) -> TargetError:
    if root.startswith("http:") and speaks_tls(root):
        return TlsMismatch(
            f"{root} expects TLS",
            "Plain HTTP was sent to a TLS port.",
            f"use https{root.removeprefix('http')}",
        )
    return NotOpenai(
        f"{root} gives no HTTP answer",
        "Another kind of service listens on this port, or the server died while answering.",
        "check the port, and the server's log",
    )
