"""What a user reads when the endpoint is not what was hoped for. Real sockets, real TLS."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from perfdoctor.errors import (
    NotOpenai,
    Refused,
    TargetError,
    TlsMismatch,
    UnknownModel,
    Unreachable,
    UsageError,
)
from perfdoctor.model import Target, Wire
from perfdoctor.preflight import discover, failures, nearby
from tests.servers._server import free_port

SECRET = "sk-do-not-print-me"
Replies = dict[str, tuple[int, str, str]]  # "METHOD path" -> status, content type, body


@contextmanager
def stub(replies: Replies, context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[str]:
    """A server with fixed replies, 404 in JSON for the rest; its URL without scheme."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            self.rfile.read(length)
            missing = (404, "application/json", '{"detail":"Not Found"}')
            status, kind, body = replies.get(f"{self.command} {self.path}", missing)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if 300 <= status < 400:
                self.send_header("Location", body)
            self.end_headers()
            self.wfile.write(body.replace("$AUTH", self.headers.get("Authorization", "")).encode())

        do_GET = do_POST = answer  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    server = Listener((host, 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] - failed handshakes are the point
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"{f'[{host}]' if ':' in host else host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def failing(endpoint: str, model: str | None = None, secret: str | None = None) -> TargetError:
    with pytest.raises(TargetError) as caught:
        discover(Target(endpoint=endpoint, model=model), secret)
    return caught.value


def models(*names: str) -> Replies:
    body = json.dumps({"object": "list", "data": [{"id": name} for name in names]})
    return {"GET /v1/models": (200, "application/json", body)}


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A server side with a self-signed certificate for 127.0.0.1."""
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "cert.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    command = ["openssl", *words.split(), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def test_closed_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens: said with the port, and with what to check."""
    monkeypatch.setattr(nearby, "PORTS", ())
    port = free_port()

    error = failing(f"http://127.0.0.1:{port}")

    assert isinstance(error, Unreachable)
    assert f"nothing listens on 127.0.0.1 port {port}" == error.what
    assert "curl" in error.do


def test_closed_port_names_a_server_that_does_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual mistake is the port: a server found at a usual one is offered."""
    with stub(models("tiny")) as place:
        monkeypatch.setattr(nearby, "PORTS", (int(place.rpartition(":")[2]),))

        error = failing(f"http://127.0.0.1:{free_port()}")

    assert f"--endpoint http://{place}" in error.do


def test_unknown_host() -> None:
    """A host name that does not resolve is not reported as a closed port."""
    error = failing("http://no-such-host.invalid:8000")

    assert isinstance(error, Unreachable)
    assert "does not resolve" in error.what


def test_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that accepts and says nothing is told from a closed one."""
    monkeypatch.setattr("perfdoctor.preflight.control.READ_S", 0.2)
    monkeypatch.setattr(nearby, "PORTS", ())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = failing(f"http://127.0.0.1:{silent.getsockname()[1]}")

    assert isinstance(error, Unreachable)
    assert "accepts connections but did not answer" in error.what


def test_server_that_dribbles_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte now and then is never late for a library that waits for each: there is an end to it."""
    monkeypatch.setattr("perfdoctor.preflight.control.READ_S", 0.3)
    monkeypatch.setattr("perfdoctor.preflight.control.CONNECT_S", 0.3)
    monkeypatch.setattr(nearby, "PORTS", ())
    with socket.create_server(("127.0.0.1", 0)) as slow:

        def dribble() -> None:
            line, _ = slow.accept()
            with suppress(OSError):
                for byte in b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100:
                    line.sendall(bytes([byte]))
                    time.sleep(0.1)

        threading.Thread(target=dribble, daemon=True).start()
        error = failing(f"http://127.0.0.1:{slow.getsockname()[1]}")

    assert isinstance(error, Unreachable)


def test_https_to_a_plain_port() -> None:
    """TLS was asked of plain HTTP: the right scheme is named."""
    with stub(models("tiny")) as place:
        error = failing(f"https://{place}")

    assert isinstance(error, TlsMismatch)
    assert f"use http://{place}" == error.do


def test_http_to_a_tls_port(tls: ssl.SSLContext) -> None:
    """Plain HTTP was sent to TLS: the right scheme is named."""
    with stub(models("tiny"), tls) as place:
        error = failing(f"http://{place}")

    assert isinstance(error, TlsMismatch)
    assert f"use https://{place}" == error.do


def test_untrusted_certificate(tls: ssl.SSLContext) -> None:
    """A self-signed certificate is not taken for a missing server."""
    with stub(models("tiny"), tls) as place:
        error = failing(f"https://{place}")

    assert isinstance(error, TlsMismatch)
    assert "not trusted" in error.what
    assert "--ca-file" in error.do


def test_a_certificate_that_is_not_checked(tls: ssl.SSLContext) -> None:
    """--insecure holds for the model list too."""
    with stub(models("tiny"), tls) as place:
        facts = discover(Target(endpoint=f"https://{place}", wire=Wire(insecure=True)), None)

    assert "tiny" == facts.model


def test_a_certificate_file_that_is_none(tmp_path: Path) -> None:
    """Said before anything is asked."""
    (tmp_path / "ca.pem").write_text("no certificate")

    with pytest.raises(UsageError, match=r"ca\.pem cannot be used"):
        discover(Target(endpoint="https://127.0.0.1:1", wire=Wire(ca_file=str(tmp_path / "ca.pem"))), None)


def test_a_dead_socket_and_a_dead_proxy_are_named(tmp_path: Path) -> None:
    """Not the endpoint's host and port, which nobody dialled."""
    path = str(tmp_path / "left-behind")
    socket.socket(socket.AF_UNIX).bind(path)
    proxy = f"http://127.0.0.1:{free_port()}"

    with pytest.raises(Unreachable, match=f"the socket {path}"):
        discover(Target(endpoint="http://tiny", wire=Wire(unix_socket=path)), None)
    with pytest.raises(Unreachable, match=f"the proxy {proxy}"):
        discover(Target(endpoint="http://tiny", wire=Wire(proxy=proxy)), None)


def test_not_http_at_all() -> None:
    """A service that speaks another protocol is not called unreachable."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            for _ in range(2):  # the second connection is the test for TLS
                line, _ = other.accept()
                line.sendall(b"220 mail ready\r\n")
                line.close()

        threading.Thread(target=greet, daemon=True).start()
        error = failing(f"http://127.0.0.1:{other.getsockname()[1]}")

    assert isinstance(error, NotOpenai)
    assert "no HTTP answer" in error.what


def test_web_page() -> None:
    """HTML with status 200 is a web page, not a server for us."""
    with stub({"GET /v1/models": (200, "text/html; charset=utf-8", "<html>hello</html>")}) as place:
        error = failing(f"http://{place}")

    assert isinstance(error, NotOpenai)
    assert "web page" in error.what


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "{}",
        '{"data": 3}',
        "nonsense",
        "",
        "[" * 100_000,
        '{"data":[{"id":"\\ud800"}]}',
        '{"data":[1e999]}',
    ],
    ids=["list", "dict", "number", "nonsense", "nothing", "deep", "surrogate", "infinite"],
)
def test_something_else_than_a_list(body: str) -> None:
    """JSON of another shape, none, or one that no parser takes is named as such."""
    with stub({"GET /v1/models": (200, "application/json", body)}) as place:
        error = failing(f"http://{place}")

    assert isinstance(error, NotOpenai)


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502, 503])
def test_refused(status: int) -> None:
    """Refusals keep their status, each with its own reason."""
    with stub({"GET /v1/models": (status, "application/json", '{"error": "no"}')}) as place:
        error = failing(f"http://{place}")

    assert isinstance(error, Refused)
    assert f"answers {status}" in error.what
    assert error.why and error.do


def test_key_is_sent_and_never_printed() -> None:
    """A server that repeats the key in its refusal does not make us print it."""
    with stub({"GET /v1/models": (401, "application/json", '{"error": "bad key $AUTH"}')}) as place:
        error = failing(f"http://{place}", secret=SECRET)

    assert "Bearer [redacted]" in error.what
    assert SECRET not in error.what + error.why + error.do
    assert "not accepted" in error.why


def test_key_in_the_url_is_refused() -> None:
    """A password in the URL is turned down without repeating it."""
    with pytest.raises(UsageError) as caught:
        discover(Target(endpoint=f"http://me:{SECRET}@127.0.0.1:1"), None)

    assert SECRET not in caught.value.what + caught.value.why + caught.value.do


def test_no_list_but_an_api_needs_the_name() -> None:
    """Without /v1/models the name cannot be found; with the flag the run goes on."""
    with stub({"POST /v1/chat/completions": (422, "application/json", "{}")}) as place:
        error = failing(f"http://{place}")
        facts = discover(Target(endpoint=place, model="mine"), None)

    assert isinstance(error, UnknownModel)
    assert "--model" in error.do
    assert ("mine", "unknown") == (facts.model, facts.engine)


def test_no_list_and_no_api() -> None:
    """404 everywhere: another service, or another prefix."""
    with stub({}) as place:
        error = failing(f"http://{place}", model="mine")

    assert isinstance(error, NotOpenai)
    assert "no /v1/models" in error.what


def test_redirect_to_tls() -> None:
    """A front that sends http on to https is named with the address to use."""
    with stub({"GET /v1/models": (308, "text/plain", "https://llm.example/v1/models")}) as place:
        error = failing(f"http://{place}")

    assert isinstance(error, TlsMismatch)
    assert "https://llm.example" in error.do


def test_several_models_need_a_choice() -> None:
    """With several models and no name, none is picked by chance."""
    with stub(models("one", "two")) as place:
        error = failing(f"http://{place}")
        facts = discover(Target(endpoint=place, model="two"), None)

    assert isinstance(error, UnknownModel)
    assert "one, two" in error.why
    assert "two" == facts.model


@pytest.mark.parametrize("endpoint", ["ftp://x", "http://", "http://host:port", "http://[::1", "://"])
def test_unusable_url(endpoint: str) -> None:
    """No URL is no crash."""
    error = failing(endpoint)

    assert isinstance(error, NotOpenai)


def test_plain_server_has_no_tls() -> None:
    """The handshake test says no for plain HTTP and for a closed port."""
    with stub({}) as place:
        assert not failures.speaks_tls(f"http://{place}")

    assert not failures.speaks_tls(f"http://127.0.0.1:{free_port()}")
