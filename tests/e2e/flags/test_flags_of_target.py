"""Flags of target, way and prompts, each by what the server is told."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from perfdoctor import store
from tests.e2e.flags._loads import Load, words_of
from tests.servers import relay, truth
from tests.servers.truth_scripts import (
    DONE,
    frame,
    stream,
)

pytestmark = pytest.mark.server


def test_headers_and_the_key_are_sent(load: Load, monkeypatch: pytest.MonkeyPatch):
    """The key from the variable that was named, as a bearer; every header."""
    monkeypatch.setenv("A_KEY", "sk-0123456789")

    told = load("--api-key-env", "A_KEY", "--header", "X-Tenant: blue", "--header", "X-Other: red").told

    assert {("Bearer sk-0123456789", "blue", "red")} == {
        (t["headers"]["authorization"], t["headers"]["x-tenant"], t["headers"]["x-other"]) for t in told
    }


def test_members_of_the_body(load: Load):
    """One more, one of another kind, one taken out; the temperature by its own flag."""
    fields = ("--body-field", "top_k=5", "--body-field", 'stop=["x"]', "--body-field", "max_tokens=null")

    body = load(*fields, "--temperature", "0.5").bodies[0]

    assert (5, ["x"], 0.5) == (body["top_k"], body["stop"], body["temperature"])
    assert "max_tokens" not in body


@pytest.mark.parametrize(
    ("api", "path", "script"),
    [
        ("chat", "chat/completions", "good"),
        ("completions", "completions", "texts"),
        ("responses", "responses", "responses-good"),
    ],
)
def test_the_api(load: Load, server: truth.Truth, api: str, path: str, script: str):
    """Each at its path, with tokens in its answers."""
    texts = [frame({"choices": [{"text": text, "finish_reason": None}]}) for text in "abc"]
    server.put("texts", stream(*texts, frame({"choices": [{"text": "", "finish_reason": "stop"}]}), DONE))

    run = load("--api", api, endpoint=server.scripted(script))

    assert {f"/s/{script}/v1/{path}"} == {told["path"] for told in run.told}
    assert 3 == run.summary["ttft"]["n"]


def test_answers_in_one_piece(load: Load):
    """No stream is asked for, so there is no first token; the end is timed."""
    run = load("--no-stream")

    assert {False} == {body.get("stream", False) for body in run.bodies}
    assert (0, None, 3) == (run.summary["ttft"]["n"], run.summary["ttft"]["p50"], run.summary["e2e"]["n"])


def test_any_http(load: Load, server: truth.Truth):
    """URL as given, method, body with its variables filled in; no list of models is asked for."""
    words = ("--api", "http", "--method", "PATCH", "--body", '{"n": {{id}}}')

    run = load(*words, endpoint=f"{server.url}/t/tokens=1/shop?q={{{{id}}}}")

    assert [("PATCH", f"/t/tokens=1/shop?q={n}", n) for n in (1, 2, 3)] == [
        (told["method"], told["path"], body["n"]) for told, body in zip(run.told, run.bodies, strict=True)
    ]
    assert 3 == run.summary["requests"]["ok"]


def test_a_body_from_a_file(load: Load, server: truth.Truth, tmp_path: Path):
    """With --api http it is sent as it stands."""
    (tmp_path / "body.json").write_text('{"who": "{{uuid}}"}')

    run = load("--api", "http", "--body-file", "body.json", endpoint=f"{server.url}/s/good/x?a=b")

    assert {"/s/good/x?a=b"} == {told["path"] for told in run.told}
    assert 3 == len({body["who"] for body in run.bodies})


def test_a_body_of_any_bytes(load: Load, server: truth.Truth, tmp_path: Path):
    """It goes out byte for byte, as what it is, and into no record."""
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff\xfe\x00")

    run = load("--api", "http", "--body-file", "picture", endpoint=server.scripted("good"))

    assert [("application/octet-stream", "7")] * 3 == [
        (told["headers"]["content-type"], told["headers"]["content-length"]) for told in run.told
    ]
    assert "picture" == run.facts.scenario.target.body_file


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(certificate, key) of a server at 127.0.0.1, signed by itself."""
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, signed = folder / "key.pem", folder / "cert.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    more = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(signed)]
    subprocess.run(["openssl", *words.split(), *more], check=True, capture_output=True)
    return signed, key


@pytest.mark.parametrize("transport", ["raw", "aiohttp", "httpx"])
def test_tls(load: Load, server: truth.Truth, certificate: tuple[Path, Path], transport: str):
    """Unchecked, or checked by the authority that was named, from the list of models to the last request."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with relay.tls(context, urlsplit(server.url).port or 0) as place:
        unchecked = load("--insecure", "--transport", transport, endpoint=f"https://{place}")
        checked = load(
            "--ca-file", str(certificate[0]), "--transport", transport, endpoint=f"https://{place}"
        )

    assert (3, 3) == (unchecked.summary["requests"]["ok"], checked.summary["requests"]["ok"])
    for record in store.open_run(checked.path).read_requests():
        sent_s, written_s, headers_s = record.sent_s, record.written_s, record.headers_s
        assert (sent_s or 0) <= (written_s or 0) <= (headers_s or 0)
    assert transport == checked.facts.client.transport


def test_a_certificate_of_our_own(load: Load, server: truth.Truth, certificate: tuple[Path, Path]):
    """A server that asks for one gets it, with the key from its own file; without, nobody is let in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificate[0])
    with relay.tls(context, urlsplit(server.url).port or 0) as place:
        ours = ("--client-cert", str(certificate[0]), "--client-key", str(certificate[1]))

        run = load("--insecure", *ours, endpoint=f"https://{place}")

    assert 3 == run.summary["requests"]["ok"]


def test_a_unix_socket(load: Load, server: truth.Truth, tmp_path: Path):
    """The endpoint's host is only its name."""
    with relay.unix_socket(tmp_path / "s", urlsplit(server.url).port or 0):
        run = load("--unix-socket", "s", endpoint="http://tiny.invalid")

    assert {"tiny.invalid"} == {told["headers"]["host"] for told in run.told}
    assert "raw" == run.facts.client.transport


def test_a_proxy(load: Load, server: truth.Truth):
    """It is asked for the whole address; the variables of the environment play no part."""
    run = load("--proxy", server.url, endpoint="http://tiny.invalid:8000")

    assert {"http://tiny.invalid:8000/v1/chat/completions"} == {told["path"] for told in run.told}
    assert "aiohttp" == run.facts.client.transport


def test_lengths(load: Load):
    """Distributions are drawn from; a shared prefix is shared, the rest is not."""
    words = ("--prompt-tokens", "60", "--output-tokens", "uniform(3,5)", "--shared-prefix", "40", "-n", "8")

    run = load(*words)

    assert {3, 4, 5} >= {body["max_tokens"] for body in run.bodies}
    assert 1 < len({body["max_tokens"] for body in run.bodies})
    texts = [words_of(told) for told in run.told]
    assert 1 == len({text[:100] for text in texts})
    assert 8 == len(set(texts))


def test_lengths_by_a_tokenizer(load: Load, tiny_model: Path):
    """Exact, where a folder of the model is at hand."""
    from tokenizers import Tokenizer

    run = load("--tokenizer", str(tiny_model), "--prompt-tokens", "90")

    tokenizer = Tokenizer.from_file(str(tiny_model / "tokenizer.json"))
    counts = [len(tokenizer.encode(words_of(told), add_special_tokens=False).ids) for told in run.told]
    assert [90, 90, 90] == counts


def test_conversations(load: Load):
    """Every second request of two turns carries the server's own answer."""
    roles = [[m["role"] for m in body["messages"]] for body in load("--turns", "2", "-n", "4").bodies]

    assert [["user"], ["user", "assistant", "user"]] * 2 == roles


def test_prompts_from_a_file(load: Load, tmp_path: Path):
    """In their order, to the file's end, with its lengths."""
    (tmp_path / "p.csv").write_text("prompt,max_tokens\nfirst,4\nsecond,5\n")

    run = load("--prompts", "p.csv", "-n", "2")

    assert [("first", 4), ("second", 5)] == [
        (words_of(t), json.loads(t["body"])["max_tokens"]) for t in run.told
    ]


def test_counts_in_every_chunk(load: Load):
    """Asked of the server."""
    body = load("--count-per-chunk").bodies[0]

    assert body["stream_options"]["continuous_usage_stats"] is True
