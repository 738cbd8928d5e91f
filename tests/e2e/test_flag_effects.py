"""Each flag of a load test once, by what it changes at the server or in the result."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from perfdoctor import store
from perfdoctor.model import RunFacts
from tests.inside import failed, perfdoctor
from tests.servers import relay, truth
from tests.servers.truth_scripts import (
    CHUNKED_HEAD,
    DONE,
    GOOD,
    LAST_CHUNK,
    ROLE,
    TOKENS,
    chunk,
    frame,
    stream,
)

pytestmark = pytest.mark.server

UNTRUSTED = 4


class Run(NamedTuple):
    """What the server was told, in the order of the requests, and what came out."""

    told: list[dict[str, Any]]
    summary: dict[str, Any]
    facts: RunFacts
    code: int
    path: Path

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(told["body"]) for told in self.told]


Load = Callable[..., Run]


@pytest.fixture(scope="module")
def server() -> Iterator[truth.Truth]:
    with truth.serving("--ttft-ms", "10", "--gap-ms", "2", "--tokens", "6") as running:
        yield running


@pytest.fixture
def load(
    server: truth.Truth, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Load:
    """Three requests, or as told, without a warm-up. Whether they can be trusted is no matter here."""
    monkeypatch.setenv("PERFDOCTOR_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)

    def run(*words: str, endpoint: str = server.url) -> Run:
        began_ns = time.perf_counter_ns()  # on the server's clock
        limit = [] if {"-n", "--duration", "--replay", "--ramp", "--scenario"} & set(words) else ["-n", "3"]
        given = ["load-test", "--endpoint", endpoint, *limit, "--warmup", "0", *words, "--json"]
        ended = perfdoctor(capsys, *given)
        assert ended.code in (0, 1, UNTRUSTED), ended.err
        path = store.open_run("latest").path
        told = sorted(
            (t for t in server.told().values() if t["received_ns"] > began_ns and t["method"] != "GET"),
            key=lambda told: told["received_ns"],
        )
        return Run(told, json.loads(ended.out), store.open_run("latest").facts, ended.code, path)

    return run


def words_of(told: dict[str, Any]) -> str:
    return str(json.loads(told["body"])["messages"][0]["content"])


# ------------------------------------------------------------------------------ the target


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


# ------------------------------------------------------------------------------ prompts


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


# ------------------------------------------------------------------------------ the load


def test_number_and_time(load: Load):
    """-n ends by number, --duration by time, both by what comes first."""
    assert 5 == load("-n", "5", "-c", "2").summary["requests"]["total"]
    assert 4 == load("-n", "4", "--duration", "1m").summary["requests"]["total"]
    assert 3 < load("-n", "100000", "--duration", "300ms").summary["requests"]["total"] < 300


def test_warm_up_is_left_out(load: Load):
    """By number and by time."""
    assert (3, 7) == ((run := load("--warmup", "2")).summary["requests"]["total"], len(run.told))
    timed = load("--warmup-time", "200ms", "-n", "3")
    assert timed.summary["requests"]["total"] < len(timed.told)


@pytest.mark.parametrize(
    ("words", "process"),
    [
        ((), "poisson"),
        (("--arrival", "constant"), "constant"),
        (("--arrival", "gamma", "--burstiness", "0.3"), "gamma"),
    ],
)
def test_arrivals(load: Load, words: tuple[str, ...], process: str):
    """Open loop at the rate, by the process asked for."""
    summary = load("--rate", "3000/min", *words, "-n", "20").summary

    assert (process, 20) == (summary["arrivals"]["process"], summary["requests"]["total"])
    assert 50.0 == pytest.approx(summary["rates"]["asked_per_s"], rel=0.5)


def test_a_ramp_ends_with_its_last_corner(load: Load):
    """Steps: about two and about eight requests."""
    summary = load("--ramp", "10/s@200ms,40/s@200ms", "--arrival", "constant").summary

    assert 8 <= summary["requests"]["total"] <= 11


def test_a_trace_is_sent_as_it_was_recorded(load: Load, tmp_path: Path):
    """Its prompts at its instants, here twice as fast."""
    rows = [{"at_s": at_s, "prompt": f"at {at_s}"} for at_s in (0, 0.2, 0.6)]
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    run = load("--replay", "trace.jsonl", "--replay-speed", "2")

    assert ["at 0", "at 0.2", "at 0.6"] == [words_of(told) for told in run.told]
    after = [(told["received_ns"] - run.told[0]["received_ns"]) / 1e9 for told in run.told]
    assert [0, 0.1, 0.3] == pytest.approx(after, abs=0.09)


def test_a_cap_on_open_requests(load: Load, server: truth.Truth):
    """What is due above it waits, is sent late, and is counted."""
    slow = server.timed(ttft_ms=100, tokens=2)

    summary = load("--rate", "40/s", "--max-in-flight", "1", "-n", "8", endpoint=slow).summary

    assert (8, 1) == (summary["requests"]["total"], summary["rates"]["in_flight_max"])
    assert summary["requests"]["late"] > 3


def test_the_same_seed_makes_the_same_arrivals(load: Load):
    """And another one other arrivals."""

    def gaps(seed: str) -> list[float]:
        run = load("--rate", "100/s", "--seed", seed, "-n", "6")
        due = sorted(r.due_s for r in store.open_run(run.path).read_requests())
        return [round(at_s - due[0], 5) for at_s in due]

    assert gaps("7") == gaps("7") != gaps("8")


def test_users_that_start_one_by_one(load: Load, server: truth.Truth):
    """Over the time given."""
    run = load("-c", "3", "-n", "3", "--ramp-up", "300ms", endpoint=server.timed(ttft_ms=400, tokens=1))

    assert (run.told[-1]["received_ns"] - run.told[0]["received_ns"]) / 1e9 >= 0.15


def test_too_many_errors_end_the_load(load: Load, server: truth.Truth):
    """Exit 1 long before the number is reached; the reason is in the result."""
    run = load("--max-error-rate", "10%", "-n", "2000", "-c", "2", endpoint=server.scripted("good+500"))

    assert run.summary["requests"]["total"] < 1000
    assert "failed" in (run.summary["stopped"] or "")
    assert run.code in (1, UNTRUSTED)


@pytest.mark.parametrize(
    "words", [("--duration", "200ms", "--drain", "100ms"), ("--deadline", "300ms", "-n", "50")]
)
def test_an_end_to_waiting(load: Load, server: truth.Truth, words: tuple[str, ...]):
    """What is open then is counted as such."""
    run = load(*words, "-c", "2", endpoint=server.timed(ttft_ms=20, gap_ms=20, tokens=400))

    assert 2 == run.summary["requests"]["censored"]


@pytest.mark.parametrize("words", [("--timeout", "150ms"), ("--idle-timeout", "100ms")])
def test_limits_of_one_request(load: Load, server: truth.Truth, words: tuple[str, ...]):
    """An answer that hangs counts as failed, by its class; the others do not."""
    server.put(
        "pauses", [CHUNKED_HEAD, chunk(ROLE), chunk(TOKENS[0]), 0.25, *map(chunk, GOOD[2:]), LAST_CHUNK]
    )

    run = load(*words, "-n", "4", endpoint=server.scripted("good+pauses"))

    requests = run.summary["requests"]
    assert 0 < requests["ok"] < 4
    assert {"timeout": 4 - requests["ok"]} == requests["failed"]


def test_several_processes(load: Load):
    """As many as asked for, shown in the run."""
    run = load("--workers", "2", "-c", "4", "-n", "12")

    assert (12, 2) == (run.summary["requests"]["total"], run.facts.client.workers)


# ------------------------------------------------------------------------------ the way


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


@pytest.mark.parametrize("transport", ["raw", "aiohttp"])
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


# ------------------------------------------------------------------------------ the result


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--slo", "ttft_p50<5s,error_rate<1%"), 0),
        (("--slo", "ttft_p50<1ms"), 1),
        (("--slo", "ttft_p99<5s"), 1),
        (("--fail-on", "error_rate>1%"), 0),
        (("--fail-on", "requests_per_s>0"), 1),
    ],
)
def test_limits_set_the_exit_code(load: Load, words: tuple[str, ...], code: int):
    """0 when they hold, 1 when not, also where there is no value (p99 of three requests); 4 if untrusted."""
    run = load(*words)

    assert (UNTRUSTED if run.summary["trust"]["status"] == "invalid" else code) == run.code


def test_another_tools_table(load: Load, capsys: pytest.CaptureFixture[str]):
    """In the JSON and in the report, by its name."""
    run = load("--metric-style", "vllm")
    shown = perfdoctor(capsys, "report", str(run.path), "--metric-style", "sglang")

    assert "vllm" == run.summary["style"]
    assert run.summary["styled"]
    assert "sglang" in shown.out


def test_definitions_are_told(load: Load, capsys: pytest.CaptureFixture[str]):
    """On demand; without, the table is short."""
    path = str(load().path)
    short, long = perfdoctor(capsys, "report", path), perfdoctor(capsys, "report", path, "--definitions")

    assert len(short.out.splitlines()) + 4 < len(long.out.splitlines())


def test_a_report_can_be_judged_by_other_limits(load: Load, capsys: pytest.CaptureFixture[str]):
    """Exit codes as those of the run: 0 or 1."""
    path = str(load().path)

    assert 0 == perfdoctor(capsys, "report", path, "--slo", "ttft_p50<10s").code
    assert 1 == perfdoctor(capsys, "report", path, "--slo", "ttft_p50<1ms").code
    assert 1 == perfdoctor(capsys, "report", path, "--fail-on", "ttft_p50<10s").code


@pytest.mark.parametrize("form", ["--csv", "--jsonl"])
def test_rows_for_each_request(load: Load, capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str):
    """To stdout, or to a file that must not exist."""
    path = str(load("-n", "4").path)

    rows = perfdoctor(capsys, "report", path, form).out.splitlines()
    written = perfdoctor(capsys, "report", path, form, "-o", "rows")

    assert 4 + (form == "--csv") == len(rows)
    assert (0, rows) == (written.code, (tmp_path / "rows").read_text().splitlines())
    failed(2, perfdoctor(capsys, "report", path, form, "-o", "rows"), "add --force")


def test_a_scenario_file(load: Load, tmp_path: Path):
    """Its load is driven; a flag replaces a value of it."""
    (tmp_path / "nightly.toml").write_text("[load]\nrequests = 5\n[load.prompts]\noutput_tokens = 4\n")

    run = load("--scenario", "nightly.toml", "-n", "2")

    assert [4, 4] == [body["max_tokens"] for body in run.bodies]


def test_a_run_is_repeated_from_its_own_scenario(load: Load, server: truth.Truth):
    """Also one of any HTTP, with its query and its holes."""
    first = load("--api", "http", "--body", "x", endpoint=f"{server.url}/s/good/x?q=steady&n={{{{id}}}}")

    again = load("--scenario", str(first.path / "scenario.toml"), endpoint=f"{server.url}/s/good/y?q=steady")

    kept = store.open_run(str(first.path)).facts.scenario
    assert ("http", 3, f"{server.url}/s/good/x?q=steady&n={{{{id}}}}") == (
        kept.target.api, kept.load.requests, kept.target.endpoint
    )  # fmt: skip
    assert ["/s/good/y?q=steady"] * 3 == [told["path"] for told in again.told]


def test_quiet_and_the_folder(server: truth.Truth, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """-q leaves stderr empty, -o names the folder."""
    words = ("load-test", "--endpoint", server.url, "-n", "2", "-q", "-o", str(tmp_path / "mine"))

    ended = perfdoctor(capsys, *words)

    assert ended.code in (0, UNTRUSTED) and "" == ended.err
    assert 2 == len(
        [r for r in store.open_run(str(tmp_path / "mine")).read_requests() if r.phase == "steady"]
    )
