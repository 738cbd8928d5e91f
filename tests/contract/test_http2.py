"""HTTP/2, which is opt-in: one connection for all users, and no other version behind the user's back."""

from __future__ import annotations

import asyncio
import builtins
from typing import Any

import pytest

from perfdoctor.clock import Clock
from perfdoctor.errors import UsageError
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.loadgen.explain import explain
from perfdoctor.loadgen.transports._choose import choose, make_transport
from perfdoctor.model import Load, RequestRecord, Target, Wire
from tests.servers import http2, truth
from tests.servers.truth_scripts import GOOD, ROLE, TOKENS

pytest.importorskip("h2")
HTTP2 = Wire(http2=True)


def drive(endpoint: str, users: int = 1, requests: int = 1) -> list[RequestRecord]:
    records: list[RequestRecord] = []

    async def conduct() -> None:
        where, load = Target(endpoint=endpoint, wire=HTTP2), Load(concurrency=users, timeout_s=5.0)
        async with Driver(where, load, Clock(), records.append) as driver:
            await driver.run_stage(Stage("steady", users, requests=requests))

    asyncio.run(conduct())
    return records


def test_streams_share_a_connection():
    """Only the first request has a connect to wait for."""
    with http2.serving(GOOD) as endpoint:
        records = drive(endpoint, users=4, requests=12)

    assert [("ok", 3, "usage")] * 12 == [(r.outcome, r.output_tokens, r.token_source) for r in records]
    assert 11 == sum(r.reused for r in records)
    (first,) = (r for r in records if not r.reused)
    assert first.sent_s <= first.dialled_s <= first.connected_s <= first.written_s <= first.headers_s


def test_a_server_that_does_not_understand_it_is_named():
    """It closes the connection, or answers with bytes of the older version: not a crash, and no TLS port."""
    with truth.serving() as server:
        records = drive(server.url)

    (record,) = records
    assert (record.error or "").startswith("HTTP/2: ")
    error = explain(record, server.url, "m", has_key=False)
    assert "does not understand HTTP/2" in error.what
    assert "leave --http2 out" in error.do


def test_a_stream_that_the_server_resets_is_a_failure():
    """Its tokens are kept."""
    with http2.serving([ROLE, *TOKENS], ends=False) as endpoint:
        (record,) = drive(endpoint)

    assert ("reset", 3) == (record.outcome, len(record.token_at_s)), record.error


def test_a_stream_without_its_finish_is_truncated():
    """The end of the bytes is not the end of the answer, in this version neither."""
    with http2.serving([ROLE, *TOKENS]) as endpoint:
        (record,) = drive(endpoint)

    assert "truncated" == record.outcome


def test_a_server_of_version_1_is_not_spoken_to_in_version_1():
    """The figures would be those of another protocol than the one asked for."""
    with truth.serving("--tokens", "2") as server:
        (record,) = drive(server.url)

    assert record.outcome in ("bad_stream", "reset"), record.error
    assert record.token_at_s == ()


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        (Wire(), "raw"),
        (Wire(insecure=True), "raw"),
        (Wire(unix_socket="/s"), "raw"),
        (Wire(proxy="http://p:1"), "aiohttp"),
        (Wire(http2=True), "httpx"),
        (Wire(transport="aiohttp"), "aiohttp"),
    ],
)
def test_the_transport_follows_from_what_is_asked(wire, name):
    """The cheapest that can do it."""
    assert name == choose(wire)[0]


@pytest.mark.parametrize(
    "wire", [Wire(transport="raw", http2=True), Wire(transport="raw", proxy="http://p:1"),
             Wire(transport="aiohttp", http2=True)],
)  # fmt: skip
def test_a_transport_that_cannot_is_refused(wire):
    """Before anything is sent."""
    with pytest.raises(UsageError):
        choose(wire)


def test_without_the_library_the_user_is_told_what_to_install(monkeypatch):
    """It is an extra."""
    load = builtins.__import__

    def without_h2(name: str, *rest: Any) -> Any:
        if name == "h2":
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_h2)

    with pytest.raises(UsageError, match="h2"):
        make_transport("http://h", {}, HTTP2, Load())
