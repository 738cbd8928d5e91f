"""Where to post, and what an exception of the HTTP client means."""

import asyncio
import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from perfdoctor.loadgen.transports.aiohttp import describe, outcome_of
from perfdoctor.loadgen.urls import completion_url

CHAT = "/chat/completions"
KEY = ConnectionKey("h", 1, False, True, None, None, None)


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://h:8000", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/v1", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/v1/", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/v1/chat/completions", "http://h:8000/v1/chat/completions"),
        ("https://h/proxy/llm", "https://h/proxy/llm/v1/chat/completions"),
        ("https://h/proxy/v1?api-version=2", "https://h/proxy/v1/chat/completions?api-version=2"),
    ],
)
def test_endpoint_may_or_may_not_name_v1(endpoint, url):
    """All these forms mean the same place."""
    assert url == completion_url(endpoint, CHAT)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (aiohttp.ClientConnectorError(KEY, OSError(111, "refused")), "connect"),
        (aiohttp.ClientConnectorSSLError(KEY, OSError(1, "wrong version")), "connect"),
        (aiohttp.ConnectionTimeoutError("slow"), "connect"),
        (aiohttp.InvalidURL("x"), "connect"),
        (ssl.SSLError(1, "bad record"), "connect"),
        (asyncio.TimeoutError(), "timeout"),
        (aiohttp.ServerDisconnectedError(), "reset"),
        (aiohttp.ClientOSError(104, "reset"), "reset"),
        (ConnectionResetError(104, "reset"), "reset"),
        (aiohttp.ClientPayloadError("not completed: ... ConnectionResetError(104)"), "reset"),
        (aiohttp.ClientPayloadError("Not enough data to satisfy transfer length header."), "truncated"),
        (aiohttp.ClientPayloadError("Invalid chunk size"), "bad_stream"),
        (ValueError("no JSON"), "bad_stream"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_every_exception_has_its_failure_class(error, outcome):
    """The classes of the design, told apart where the exception is seen."""
    assert outcome == outcome_of(error)


def test_tls_failures_stay_recognisable():
    """The record keeps only text."""
    assert describe(aiohttp.ClientConnectorSSLError(KEY, OSError(1, "wrong"))).startswith("TLS: ")
    assert describe(aiohttp.ClientConnectorError(KEY, ConnectionResetError())).startswith("TLS: ")
    assert not describe(aiohttp.ClientConnectorError(KEY, ConnectionRefusedError(111, "no"))).startswith(
        "TLS"
    )
    assert "TimeoutError" == describe(asyncio.TimeoutError())
