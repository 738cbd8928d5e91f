"""What does not fit together, or cannot be read, is said before anything is done: exit 2, what, why, do."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdoctor import session
from tests.inside import failed, perfdoctor

AT = ("--endpoint", "http://127.0.0.1:1")
OPEN = (*AT, "--rate", "5/s")
HTTP = (*AT, "--api", "http")

TOGETHER = {
    "users of an open loop": ((*OPEN, "-c", "4"), "use --max-in-flight"),
    "users of a ramp": ((*AT, "--ramp", "1/s:2/s:3s", "-c", "4"), "-c does not go with --ramp"),
    "arrival without a rate": ((*AT, "--arrival", "poisson"), "add --rate"),
    "a cap on a closed loop": ((*AT, "--max-in-flight", "3"), "add --rate"),
    "burstiness of Poisson": ((*OPEN, "--burstiness", "0.5"), "add --arrival gamma"),
    "no burstiness": ((*OPEN, "--arrival", "gamma", "--burstiness", "0"), "more than 0"),
    "users that start slowly in an open loop": ((*OPEN, "--ramp-up", "5s"), "--ramp 1/s:20/s:30s"),
    "rate and ramp": ((*OPEN, "--ramp", "1/s:2/s:3s"), "A ramp says the rate"),
    "rate and trace": ((*OPEN, "--replay", "{trace}"), "use --replay-speed"),
    "users of a trace": ((*AT, "--replay", "{trace}", "-c", "2"), "-c does not go with --replay"),
    "speed of nothing": ((*AT, "--replay-speed", "2"), "add --replay FILE"),
    "a standing trace": ((*AT, "--replay", "{trace}", "--replay-speed", "0"), "more than 0"),
    "turns of a file": ((*AT, "--prompts", "{prompts}", "--turns", "3"), "its own prompts and conversations"),
    "lengths of a file": ((*AT, "--prompts", "{prompts}", "--prompt-tokens", "3"), "leave --prompts out"),
    "chunks of one piece": ((*AT, "--no-stream", "--count-per-chunk"), "no chunks"),
    "HTTP/2 by another": ((*AT, "--http2", "--transport", "raw"), "HTTP/2 was asked for"),
    "proxy by another": ((*AT, "--proxy", "http://p:1", "--transport", "raw"), "a proxy was asked for"),
    "method of an OpenAI API": ((*AT, "--method", "PUT"), "add --api http"),
    "body of an OpenAI API": ((*AT, "--body", "x"), "add --api http"),
    "two bodies": ((*HTTP, "--body", "x", "--body-file", "{prompts}"), "A request has one"),
    "model of any HTTP": ((*HTTP, "--model", "tiny"), "belongs to OpenAI's APIs"),
    "member of any HTTP": ((*HTTP, "--body-field", "a=1"), "belongs to OpenAI's APIs"),
    "stream of any HTTP": ((*HTTP, "--no-stream"), "belongs to OpenAI's APIs"),
    "any HTTP nowhere": (("--api", "http"), "add --endpoint URL"),
    "TLS of a local model": (("--model", "tiny", "--insecure"), "a child process"),
    "key of a local model": (("--model", "tiny", "--header", "A: b"), "a local model"),
    "proxy and socket": ((*AT, "--proxy", "http://p:1", "--unix-socket", "{socket}"), "another host"),
    "authorities unasked": ((*AT, "--insecure", "--ca-file", "{prompts}"), "does not go with --insecure"),
    "key without certificate": ((*AT, "--client-key", "{prompts}"), "add --client-cert"),
}

VALUES = {
    "rate": (("--rate", "fast"), "write 5/s or 300/min"),
    "no rate": (("--rate", "0"), "above zero"),
    "rate of a week": (("--rate", "3/w"), "write 5/s"),
    "arrival": ((*OPEN, "--arrival", "gama"), "--arrival gamma"),
    "API": ((*AT, "--api", "chats"), "--api chat"),
    "transport": ((*AT, "--transport", "curl"), "auto, raw, aiohttp, httpx"),
    "ramp": ((*AT, "--ramp", "1/s..5/s"), "1/s:20/s:30s or 1/s@10s,5/s@10s"),
    "ramp without time": ((*AT, "--ramp", "1/s:5/s"), "1/s:20/s:30s"),
    "step without time": ((*AT, "--ramp", "1/s@10s,5/s"), "1/s@10s,5/s@10s"),
    "share": ((*AT, "--max-error-rate", "150%"), "between 0 and 100 %"),
    "share in words": ((*AT, "--max-error-rate", "few"), "write 10% or 0.1"),
    "drain": ((*AT, "--drain", "soon"), "30s"),
    "temperature": ((*AT, "--temperature", "-1"), "0 or more"),
    "no number": ((*AT, "--temperature", "nan"), "0 or more"),
    "distribution": ((*AT, "--prompt-tokens", "gauss(4,2)"), "normal(48,12)"),
    "length": ((*AT, "--output-tokens", "-3"), "is no length"),
    "member": ((*AT, "--body-field", "top_p"), "--body-field ignore_eos=true"),
    "prompts": ((*AT, "--prompts", "no.jsonl"), "no.jsonl cannot be read"),
    "prompts in a folder": ((*AT, "--prompts", "."), "Is a directory"),
    "trace": ((*AT, "--replay", "no.jsonl"), "no.jsonl cannot be read"),
    "body file": ((*HTTP, "--body-file", "no.txt"), "no.txt cannot be read"),
    "authorities": ((*AT, "--ca-file", "no.pem"), "no.pem cannot be read"),
    "certificate": ((*AT, "--client-cert", "no.pem"), "no.pem cannot be read"),
    "authorities of none": ((*HTTP, "--ca-file", "{prompts}"), "a PEM file of certificates"),
    "certificate of none": ((*HTTP, "--client-cert", "{prompts}"), "It must be PEM"),
    "tokenizer": ((*AT, "--tokenizer", "."), "tokenizer.json"),
    "socket that is none": ((*AT, "--unix-socket", "{prompts}"), "is no socket"),
    "no socket": ((*AT, "--unix-socket", "/no/such"), "there is no socket"),
    "password of a proxy": ((*AT, "--proxy", "http://me:hunter2@p:1"), "a user name or password"),
    "proxy": ((*AT, "--proxy", "socks5://p:1"), "http://proxy.example:3128"),
    "SLO": ((*AT, "--slo", "tfft_p95<1s"), "ttft_p95"),
    "SLO without unit": ((*AT, "--slo", "ttft_p95<fast"), "500ms"),
    "fail-on": ((*AT, "--fail-on", "errors>1%"), "error_rate"),
    "metric style": ((*AT, "--metric-style", "wrk"), "vllm"),
    "workers": ((*AT, "--workers", "0"), "--workers"),
    "option": ((*AT, "--concurency", "3"), "--concurrency"),
    "address without its flag": (("http://127.0.0.1:1",), "--endpoint URL"),
    "scenario": (("--scenario", "no.toml"), "no.toml cannot be read"),
}


@pytest.fixture(autouse=True)
def nothing_is_driven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files to name, and a session that must not begin."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "hello"}\n')
    (tmp_path / "trace.jsonl").write_text('{"at_s": 0, "prompt": "hello"}\n')

    def begun(*_: object) -> None:
        raise AssertionError("a run was begun")

    monkeypatch.setattr(session.preflight, "discover", begun)


def filled(words: tuple[str, ...], folder: Path) -> list[str]:
    places = {"prompts": folder / "prompts.jsonl", "trace": folder / "trace.jsonl", "socket": folder / "s"}
    return [w.format(**places) if w.startswith("{") and w[1:-1] in places else w for w in words]


@pytest.mark.parametrize("case", TOGETHER)
def test_flags_that_do_not_go_together(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
):
    """Which flag, why, and the way out."""
    monkeypatch.setattr(Path, "is_socket", lambda _: True)
    words, phrase = TOGETHER[case]

    failed(2, perfdoctor(capsys, "load-test", *filled(words, tmp_path)), phrase)


@pytest.mark.parametrize("case", VALUES)
def test_a_value_that_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path, case: str):
    """What is wrong with it, and an example of a right one."""
    words, phrase = VALUES[case]

    ended = perfdoctor(capsys, "load-test", *filled(words, tmp_path))

    failed(2, ended, phrase)
    assert "hunter2" not in ended.err


def test_diagnose_refuses_the_same(capsys: pytest.CaptureFixture[str]):
    """One set of flags, one set of rules; and an address is no run folder."""
    failed(2, perfdoctor(capsys, "diagnose", *OPEN, "-c", "4"), "use --max-in-flight")
    failed(2, perfdoctor(capsys, "diagnose", "http://127.0.0.1:1"), "--endpoint http://127.0.0.1:1")
    failed(2, perfdoctor(capsys, "diagnose", *AT, "--no-load", "-c", "4"), "-c does not go with --no-load")
