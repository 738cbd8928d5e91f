"""The wire over real sockets: framing that servers get wrong, ways to a server, what a machine lacks."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.loadgen.refusal import ran_out
from perfdoctor.loadgen.transports._choose import make_transport
from perfdoctor.loadgen.transports._transport import Dial, Failure, Request
from perfdoctor.model import Load, RequestRecord, Target, Wire
from tests.servers import relay, truth
from tests.servers.truth import Truth
from tests.servers.truth_scripts import (
    CHUNKED_HEAD,
    CLOSE,
    DONE,
    FINISH,
    GOOD,
    JSON,
    LAST_CHUNK,
    ROLE,
    TOKENS,
    Step,
    chunk,
    error_body,
    head,
    stream,
    usage,
    whole,
)

TRANSPORTS = ("raw", "aiohttp")
both = pytest.mark.parametrize("transport", TRANSPORTS)


@pytest.fixture(scope="module")
def server() -> Iterator[Truth]:
    with truth.serving("--ttft-ms", "10", "--gap-ms", "2", "--tokens", "4") as running:
        yield running


def drive(
    endpoint: str,
    requests: int = 1,
    wire: Wire | None = None,
    load: Load | None = None,
    secret: str | None = None,
    **target: Any,
) -> list[RequestRecord]:
    """The records of one user's requests."""
    records: list[RequestRecord] = []

    async def conduct() -> None:
        where = Target(endpoint=endpoint, wire=wire or Wire(), **target)
        load_ = load or Load(concurrency=1, timeout_s=10.0)
        async with Driver(where, load_, Clock(), records.append, secret) as driver:
            await driver.run_stage(Stage("steady", 1, requests=requests))

    loop.run(conduct())
    return records


def facts(record: RequestRecord) -> tuple[str, int, int | None, str | None]:
    return record.outcome, len(record.token_at_s), record.output_tokens, record.token_source


# ------------------------------------------------------------------------------ events

RIGHT = ("ok", 3, 3, "usage")
SEPARATORS = '{"choices":[{"index":0,"delta":{"content":"a\u2028b\u0085c"},"finish_reason":null}]}'
COLON = b'{"choices":[{"index":0,"delta":{"content":":\\n\\n"},"finish_reason":null}]}'

# the rows of the conformance table (reference, loadgen 4) that are not in test_loadgen_streams; each has the
# role, three tokens, the finish and the usage
EVENTS: dict[str, list[bytes]] = {
    "no-space": [piece.replace(b"data: ", b"data:") for piece in GOOD],
    "comment-before-data": [b": ping\n" + piece for piece in GOOD],
    "event-and-id": [b"event: message\nid: 7\nretry: 10\n" + piece for piece in GOOD],
    "two-data-lines": [piece.replace(b'"choices":', b'"choices":\ndata: ') for piece in GOOD],
    "no-last-blank-line": [*GOOD[:-1], DONE.rstrip()],
    "usage-without-blank-line": [*GOOD[:-2], usage(3).rstrip()],
    "line-separators": [ROLE, f"data: {SEPARATORS}\n\n".encode(), *TOKENS[1:], FINISH, usage(3), DONE],
    "text-like-an-event": [ROLE, b"data: " + COLON + b"\n\n", *TOKENS[1:], FINISH, usage(3), DONE],
    "all-in-one": [b"".join(GOOD)],
    "usage-everywhere": [piece.replace(b'"choices"', b'"usage":null,"choices"') for piece in GOOD],
}


@both
@pytest.mark.parametrize("name", EVENTS)
def test_every_row_of_the_conformance_table(server, transport, name):
    """Text, timing and usage are right where other clients lose tokens, the usage or the request."""
    (record,) = drive(server.put("events", stream(*EVENTS[name])), wire=Wire(transport=transport))

    assert RIGHT == facts(record)
    assert "stop" == record.finish_reason


@both
def test_all_tokens_of_one_read_share_its_stamp(server, transport):
    """They came at one instant; spreading them would invent gaps."""
    pieces = [CHUNKED_HEAD, 0.01, b"".join(map(chunk, GOOD)) + LAST_CHUNK]
    (record,) = drive(server.put("at-once", pieces), wire=Wire(transport="raw"))

    assert 1 == len(set(record.token_at_s)) == record.reads
    assert sum(map(len, GOOD)) == record.body_bytes


# ------------------------------------------------------------------------------ framing

BODY = b"".join(GOOD)
SPLIT_LF = CHUNKED_HEAD.replace(b"\r\n", b"\n")
BOTH_LENGTHS = head(extra=f"Transfer-Encoding: chunked\r\nContent-Length: {len(BODY)}\r\n")

# name -> (steps, outcome, tokens)
FRAMES: dict[str, tuple[list[Step], str, int]] = {
    "interim": (
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n", *stream(*GOOD)], "ok", 3,
    ),
    "trailers": ([CHUNKED_HEAD, chunk(BODY), b"0\r\nX-Sum: 1\r\nX-Time: 5\r\n\r\n"], "ok", 3),
    "chunk-extension": ([CHUNKED_HEAD, b"%x;a=b\r\n%b\r\n" % (len(BODY), BODY), LAST_CHUNK], "ok", 3),
    "upper-case-size": ([CHUNKED_HEAD, b"%X\r\n%b\r\n" % (len(BODY), BODY), LAST_CHUNK], "ok", 3),
    "padded-size": ([CHUNKED_HEAD, b"%x  \r\n%b\r\n" % (len(BODY), BODY), LAST_CHUNK], "ok", 3),
    "lf-only": ([SPLIT_LF, chunk(BODY), LAST_CHUNK], "ok", 3),
    "content-length": ([head(extra=f"Content-Length: {len(BODY)}\r\n"), BODY], "ok", 3),
    "until-close": ([head(extra="Connection: close\r\n"), *GOOD, CLOSE], "ok", 3),
    "comments-until-close": (
        [head(version="1.0"), *(b": keepalive\n\n" + piece for piece in GOOD), CLOSE], "ok", 3,
    ),
    "cut-until-close": ([head(version="1.0"), ROLE, *TOKENS, CLOSE], "truncated", 3),
    "cut-without-finish": ([CHUNKED_HEAD, chunk(ROLE + TOKENS[0]), LAST_CHUNK], "truncated", 1),
    "short-body": (
        [head(extra=f"Content-Length: {len(BODY) + 10}\r\n"), ROLE + TOKENS[0], CLOSE], "truncated", 1,
    ),
    "both-lengths": ([BOTH_LENGTHS, chunk(BODY), LAST_CHUNK], "bad_stream", 0),
    "headers-then-close": ([CHUNKED_HEAD, CLOSE], "truncated", 0),
    "half-a-head": ([b"HTTP/1.1 200 OK\r\nContent-Ty", CLOSE], "truncated", 0),
    "two-answers": ([b"".join(map(bytes, whole(200, "text/event-stream", BODY))) * 2], "ok", 3),
    "compressed": (
        [head(extra="Content-Encoding: gzip\r\nContent-Length: 4\r\n"), b"\x1f\x8b\x08\0"], "bad_stream", 0,
    ),
    "endless-head": ([b"HTTP/1.1 200 OK\r\n" + b"X-Filler: " + b"y" * 600_000], "bad_stream", 0),
    "many-headers": ([b"HTTP/1.1 200 OK\r\n" + b"X-Filler: y\r\n" * 50_000], "bad_stream", 0),
    "switching": ([b"HTTP/1.1 101 Other\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"], "bad_stream", 0),
    "negative-length": ([head(extra="Content-Length: -5\r\n"), BODY], "bad_stream", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMES)
def test_every_framing_has_its_outcome(server, name):
    """Over our own client: legal framings are read, illegal ones are a failure of their own."""
    steps, outcome, tokens = FRAMES[name]
    (record,) = drive(server.put("frames", steps), wire=Wire(transport="raw"))

    assert (outcome, tokens) == (record.outcome, len(record.token_at_s)), record.error


LEFT_OUT = {  # what aiohttp sees otherwise, or not at all
    "padded-size", "both-lengths", "half-a-head", "many-headers", "two-answers", "lf-only", "switching",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in FRAMES if name not in LEFT_OUT])
def test_the_fallback_agrees_about_framing(server, name):
    """The same answer must not be a success over one transport and a failure over the other."""
    steps, outcome, tokens = FRAMES[name]
    (record,) = drive(server.put("frames", steps), wire=Wire(transport="aiohttp"))

    assert (outcome, tokens) == (record.outcome, len(record.token_at_s)), record.error


def test_a_second_answer_is_not_taken_for_the_next_one(server):
    """A server that answers twice has lost count; its connection is not used again."""
    steps = [b"".join(map(bytes, whole(200, "text/event-stream", BODY))) * 2]
    records = drive(server.put("twice", steps), requests=3, wire=Wire(transport="raw"))

    assert ["ok"] * 3 == [r.outcome for r in records]
    assert not any(r.reused for r in records)


@both
def test_a_head_request_waits_for_no_body(server, transport):
    """Its answer speaks of a body that does not come; the connection can be used again."""
    endpoint = server.put("headed", [head(kind=JSON, extra="Content-Length: 500\r\n")])
    records = drive(
        endpoint, requests=3, wire=Wire(transport=transport), api="http", stream=False, method="HEAD"
    )

    assert [("ok", 200, 0)] * 3 == [(r.outcome, r.status, r.body_bytes) for r in records]
    assert [False, True, True] == [r.reused for r in records]


def test_answers_alike_are_told_apart_where_they_differ(server):
    """The head that repeats is recognised by its bytes; another status or length is parsed."""
    same = b"".join(map(bytes, whole(200, JSON, b'{"a":1}')))
    longer = b"".join(map(bytes, whole(200, JSON, b'{"a":12}')))
    busy = b"".join(map(bytes, whole(503, JSON, error_body("busy"), "Retry-After: 7\r\n")))
    torn = same[:-3]
    names = []
    for number, answer in enumerate((same, same, longer, busy, same, same)):
        server.put(f"alike{number}", [answer])
        names.append(f"alike{number}")
    server.put("alike6", [torn, 0.01, same[-3:]])
    records = drive(server.scripted("+".join(["alike6", *names])), requests=14, api="http", stream=False)

    bodies = sorted(r.body_bytes for r in records if r.outcome == "ok")
    assert [7] * 10 + [8] * 2 == bodies
    assert [7.0, 7.0] == [r.retry_after_s for r in records if r.outcome == "http_503"]
    assert 13 == sum(r.reused for r in records)


# ------------------------------------------------------------------------------ refusals


@both
@pytest.mark.parametrize(
    ("value", "seconds"), [("2", 2.0), ("0.5", 0.5), ("soon", None), ("-1", None), ("9e99", None)]
)
def test_a_429_tells_when_to_come_back(server, transport, value, seconds):
    """A refusal in a millisecond is a failure with its own latency, and its Retry-After is kept."""
    steps = whole(429, JSON, error_body("slow down"), f"Retry-After: {value}\r\n")
    (record,) = drive(server.put("busy", steps), wire=Wire(transport=transport))

    assert ("http_429", 429, seconds) == (record.outcome, record.status, record.retry_after_s)
    assert "slow down" == record.error
    assert record.token_at_s == () and record.first_token_s is None


@both
def test_a_gateways_timeout_after_a_pause_is_no_token(server, transport):
    """524 in place of an answer: a failure, as late as it came."""
    (record,) = drive(
        server.put("gateway", [0.2, *whole(524, "text/html", b"<html>a timeout occurred</html>")]),
        wire=Wire(transport=transport),
    )

    assert ("http_524", None, None) == (record.outcome, record.first_token_s, record.output_tokens)
    assert record.end_s - record.sent_s >= 0.2


@both
def test_a_silent_server_meets_the_idle_timeout(server, transport):
    """In the middle of a stream, and before its first byte; not a stream that merely takes long."""
    wire, load = Wire(transport=transport), Load(concurrency=1, idle_timeout_s=0.15)
    (stalled,) = drive(
        server.put("stall", [CHUNKED_HEAD, chunk(ROLE + TOKENS[0]), 5.0]), wire=wire, load=load
    )
    (mute,) = drive(server.put("mute", [5.0]), wire=wire, load=load)
    steady = [step for piece in GOOD for step in (chunk(piece), 0.05)]
    (slow,) = drive(server.put("slow", [CHUNKED_HEAD, *steady, LAST_CHUNK]), wire=wire, load=load)

    assert ("timeout", 1) == (stalled.outcome, len(stalled.token_at_s))
    assert ("timeout", None) == (mute.outcome, mute.status)
    assert ("ok", 3) == (slow.outcome, len(slow.token_at_s))


# ------------------------------------------------------------------------------ ways to a server


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that only its own file vouches for, with its key, in one PEM."""
    folder = tmp_path_factory.mktemp("keys")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", "/CN=perfdoctor test", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    (folder / "both.pem").write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return folder


@contextlib.contextmanager
def over_tls(server: Truth, keys: Path, asks_for_ours: bool = False) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys / "cert.pem", keys / "key.pem")
    if asks_for_ours:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(keys / "cert.pem")
    with relay.tls(context, int(server.url.rpartition(":")[2])) as address:
        yield f"https://{address}"


ALL = ("raw", "aiohttp", "httpx")


@pytest.mark.parametrize("transport", ALL)
def test_tls_is_verified_unless_told_otherwise(server, keys, transport):
    """A certificate that nobody vouches for is a failure to connect; --ca-file or --insecure helps."""
    ca_file = str(keys / "cert.pem")
    with over_tls(server, keys) as url:
        (refused,) = drive(url, wire=Wire(transport=transport))
        (trusted, again) = drive(url, requests=2, wire=Wire(transport=transport, ca_file=ca_file))
        (unverified,) = drive(url, wire=Wire(transport=transport, insecure=True))

    assert "connect" == refused.outcome
    assert refused.error.startswith("TLS: ") and "certificate" in refused.error
    assert ["ok"] * 3 == [r.outcome for r in (trusted, again, unverified)]
    assert again.reused


def test_tls_from_the_environments_trust_store(server, keys, monkeypatch):
    """SSL_CERT_FILE names the authority, as for every program that uses OpenSSL."""
    monkeypatch.setenv("SSL_CERT_FILE", str(keys / "cert.pem"))
    with over_tls(server, keys) as url:
        (record,) = drive(url)

    assert "ok" == record.outcome
    assert record.dialled_s <= record.tcp_s < record.connected_s <= record.written_s


@pytest.mark.parametrize("transport", ALL)
def test_a_client_certificate_is_shown(server, keys, transport):
    """To a server that asks for one; without it the server hangs up."""
    ours = Wire(transport=transport, ca_file=str(keys / "cert.pem"))
    shown = Wire(transport=transport, ca_file=str(keys / "cert.pem"), client_cert=str(keys / "both.pem"))
    with over_tls(server, keys, asks_for_ours=True) as url:
        (without,) = drive(url, wire=ours)
        (record,) = drive(url, wire=shown)

    assert without.outcome in ("connect", "reset")
    assert "ok" == record.outcome


@pytest.mark.parametrize("transport", ALL)
def test_a_unix_socket_is_a_way(server, tmp_path, transport):
    """The URL's host is then a name only."""
    path = tmp_path / "s"
    with relay.unix_socket(path, int(server.url.rpartition(":")[2])):
        (record,) = drive("http://model", wire=Wire(transport=transport, unix_socket=str(path)))

    assert ("ok", 4) == (record.outcome, record.output_tokens)


@pytest.mark.parametrize("transport", ALL)
def test_what_cannot_be_reached_is_a_failure_to_connect(transport, tmp_path):
    """A closed port, a name without address, a socket that is not there."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        wire = Wire(transport=transport)
        gone = Wire(transport=transport, unix_socket=str(tmp_path / "gone"))
        records = [
            *drive(f"http://127.0.0.1:{port}", wire=wire),
            *drive("http://no-such-host.invalid", wire=wire),
            *drive("http://model", wire=gone),
        ]

    assert ["connect"] * 3 == [r.outcome for r in records]
    assert all(r.error and r.sent_s <= r.end_s and r.status is None for r in records)


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
@both
def test_ipv6(transport):
    """An address in brackets."""
    try:
        with truth.serving("--ttft-ms", "5", "--gap-ms", "1", "--tokens", "2", host="::1") as running:
            port = running.url.rpartition(":")[2]
            (record,) = drive(f"http://[::1]:{port}", wire=Wire(transport=transport))
    except ValueError:
        pytest.skip("this machine has no address ::1")

    assert "ok" == record.outcome


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_stamps_of_the_way_are_in_order(server, transport):
    """due, sent, dialled, connected, written, headers; on a kept-alive connection no connect at all."""
    first, second = drive(server.url, requests=2, wire=Wire(transport=transport))

    way = [first.due_s, first.sent_s, first.dialled_s, first.connected_s, first.written_s, first.headers_s]
    assert way == sorted(way)
    assert (None, None, None) == (second.dialled_s, second.tcp_s, second.connected_s)
    assert second.sent_s <= second.written_s <= second.headers_s


def test_a_proxy_is_asked_by_the_whole_url(server):
    """Only where one is named; the environment's are ignored, since they merge chunks."""
    proxy = server.url  # answers what it is asked, and tells what that was
    (record,) = drive("http://elsewhere.invalid:81", wire=Wire(proxy=proxy))

    assert "ok" == record.outcome
    paths = [told["path"] for told in server.told().values()]
    assert "http://elsewhere.invalid:81/v1/chat/completions" in paths


@both
def test_proxies_of_the_environment_are_ignored(server, transport, monkeypatch):
    """Set for a browser, they would stand between the load and the server."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (record,) = drive(server.url, wire=Wire(transport=transport))

    assert "ok" == record.outcome


# ------------------------------------------------------------------------------ what this machine lacks


class Nowhere:
    def on_head(self, *_: Any) -> Any:
        return lambda *_: False


def send_without_descriptors(url: str, transport: str) -> Failure:
    async def conduct() -> Failure:
        made = make_transport(url, {}, Wire(transport=transport), Load())  # type: ignore[arg-type]
        await made.open()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (_first_free_descriptor(), hard))
        try:
            with pytest.raises(Failure) as caught:
                await made.send(Request("GET", "/"), Nowhere(), Dial())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await made.close()
        return caught.value

    return loop.run(conduct())


def _first_free_descriptor() -> int:
    free = os.dup(0)
    os.close(free)
    return free


@both
def test_no_descriptor_left_is_this_machines_limit(server, transport):
    """Named as such, with the setting to change; the server is not blamed."""
    failure = send_without_descriptors(server.url, transport)

    assert "connect" == failure.outcome
    assert "ulimit -n" in failure.why
    assert ran_out(failure.why)


EXHAUST = """
import sys
from tests.contract.test_wire import drive
from tests.servers import truth
from perfdoctor.model import Load, Wire
with truth.serving("--ttft-ms", "5", "--gap-ms", "1", "--tokens", "1") as server:
    closing = b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n"
    endpoint = server.put("closing", [closing])
    open("/proc/sys/net/ipv4/ip_local_port_range", "w").write("40000 40003")
    for record in drive(endpoint, 20, Wire(transport=sys.argv[1]), api="http", stream=False):
        print(record.outcome, record.error or "")
"""


@pytest.mark.server
@both
def test_no_local_port_left_is_this_machines_limit(transport, tmp_path):
    """In a network of its own with four ports: each connection that we close keeps its port for a minute."""
    script = tmp_path / "exhaust.py"
    script.write_text(EXHAUST)
    inside = 'ip link set lo up && exec "$@"'
    command = ["unshare", "-rn", "sh", "-c", inside, "sh", sys.executable, str(script), transport]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(truth.ROOT)}
    )
    if "unshare" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip("this machine gives no network of one's own")

    failed = [line for line in done.stdout.splitlines() if line.startswith("connect")]
    assert failed, done.stdout + done.stderr
    assert all("ip_local_port_range" in line and ran_out(line) for line in failed)


def test_an_echoed_key_reaches_no_byte_of_the_record(server):
    """Whole or in an error body, in any transport, encoded or not."""
    secret = "sk-wire/secret+0123456789"
    for transport in TRANSPORTS:
        records = drive(server.scripted("echoes-key"), wire=Wire(transport=transport), secret=secret)

        assert secret.encode() not in msgspec.json.encode(records)
        assert "[redacted]" in records[0].error


@both
def test_an_answer_in_one_piece_is_bounded(server, transport, monkeypatch):
    """On both sides of the limit; memory is the client's, whatever a server sends."""
    body = msgspec.json.encode({"choices": [{"message": {"content": "x" * 3000}, "finish_reason": "stop"}]})
    endpoint = server.put("big", whole(200, JSON, body))
    wire = Wire(transport=transport)
    monkeypatch.setattr("perfdoctor.loadgen.exchange.WHOLE_BYTES", len(body))
    (fits,) = drive(endpoint, wire=wire, stream=False)
    monkeypatch.setattr("perfdoctor.loadgen.exchange.WHOLE_BYTES", len(body) - 1)
    (too_long,) = drive(endpoint, wire=wire, stream=False)

    assert ("ok", None, len(body)) == (fits.outcome, fits.first_token_s, fits.body_bytes)
    assert "bad_stream" == too_long.outcome


@both
def test_what_cannot_be_read_is_shown(server, transport):
    """The reader of the report sees what listens there."""
    wire = Wire(transport=transport)
    (page,) = drive(server.put("page", whole(200, JSON, b"<html>login</html>")), wire=wire, stream=False)
    (event,) = drive(server.put("event", stream(ROLE, b"data: {nonsense}\n\n")), wire=wire)

    assert "bad_stream" == page.outcome and "<html>login" in page.error
    assert "bad_stream" == event.outcome and "{nonsense}" in event.error
