"""Orders and servers drawn at random: an own error or a result whose counts add up, and never a key in it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfdoctor import store
from tests.inside import Ended, failed, perfdoctor
from tests.servers import truth

pytestmark = pytest.mark.server

KEY = "sk-random-0123456789abcdef"
LIMITS = ["--timeout", "400ms", "--drain", "200ms", "--deadline", "4s"]
SCRIPTS = (
    "good", "good", "echoes-key", "500", "good+429", "good+empty", "truncated", "good+reset", "stale",
    "prompt-tail", "merged", "one-token", "good+finish-only", "refuses-usage", "whole", "text", "any-events",
    "responses-good", "html", "good+error-later", "good+hangs",
)  # fmt: skip

# One of each line, with the odds that it is given at all.
ORDERS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (1.0, ("-n 3", "-n 7 -c 3", "-n 5 -c 2 --ramp-up 100ms", "--duration 300ms -c 2", "--rate 40/s -n 8",
           "--rate 50/s --arrival gamma --burstiness 0.5 -n 9",
           "--rate 60/s --duration 200ms --max-in-flight 2",
           "--ramp 1/s:60/s:300ms", "--ramp 20/s@100ms,60/s@100ms --arrival constant", "--replay trace.jsonl",
           "--replay trace.jsonl --replay-speed 0.5", "-n 4 --workers 1")),
    (0.4, ("--api completions", "--api responses", "--api http", "--api http --body {{uuid}}",
           "--api http --method PUT --body x", "--no-stream")),
    (0.4, ("--transport aiohttp", "--transport httpx", "--transport raw", "--http2", "--insecure")),
    (0.3, ("--prompts rows.jsonl", "--prompts rows.csv", "--prompts talk.json", "--turns 2",
           "--prompt-tokens normal(40,20)", "--prompt-tokens 1", "--shared-prefix 20")),
    (0.3, ("--output-tokens 1", "--output-tokens uniform(1,4)", "--count-per-chunk", "--temperature 0")),
    (0.3, ("--warmup 0", "--warmup 2", "--warmup-time 100ms", "--warmup-time 0s")),
    (0.3, ("--slo ttft_p95<500ms,goodput>1", "--slo tpot_p99<1us", "--max-error-rate 10%",
           "--max-error-rate 0%")),
    (0.3, ("--api-key-env A_KEY", "--header Authorization:" + KEY, "--header X-City:{{id}}",
           "--header Connection:close", "--header Expect:100-continue", "--header Host:elsewhere")),
    (0.2, ("--body-field n=2", "--body-field max_tokens=null", "--body-field stream=false",
           "--body-field model=null")),
    (0.2, ("--idle-timeout 1ms", "--connect-timeout 1us", "--seed 99999999999999999999", "--unix-socket none",
           "--proxy http://127.0.0.1:9", "--model nope", "-n 0", "--rate nan/s", "--ramp x", "--turns 0",
           "--prompts trace.jsonl", "--prompts empty.jsonl", "--ca-file rows.csv", "--scenario rows.csv")),
)  # fmt: skip
FORMS = (
    ["--json"],
    [],
    ["--markdown"],
    ["--csv"],
    ["--jsonl"],
    ["--metric-style", "vllm"],
    ["--slo", "goodput>1"],
)


@pytest.fixture(scope="module")
def server() -> Iterator[truth.Truth]:
    with truth.serving("--ttft-ms", "3", "--gap-ms", "1", "--tokens", "4") as running:
        yield running


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFDOCTOR_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("A_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    said = [{"from": "human", "value": text} for text in ("One?", "Two?")]
    for name, text in {
        "rows.jsonl": '{"prompt":"a"}\n{"prompt":"a"}\n',
        "rows.csv": "city,prompt\nBonn,Hello\n",
        "talk.json": json.dumps([{"conversations": said}]),
        "trace.jsonl": '{"at_s":0.05,"prompt":"b"}\n{"at_s":0,"prompt":"a"}\n',
        "empty.jsonl": "",
    }.items():
        Path(name).write_text(text)


def drawn(seed: int, server: truth.Truth) -> list[str]:
    chance = random.Random(seed)
    words = [w for odds, lines in ORDERS if chance.random() < odds for w in chance.choice(lines).split(" ")]
    endpoint = server.url if chance.random() < 0.6 else server.scripted(chance.choice(SCRIPTS))
    return ["--endpoint", endpoint, *words, *LIMITS]


def strictly(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def check(ended: Ended, words: list[str]) -> None:
    """Refused, or failed with its reason, or a result that adds up."""
    said = f"{ended.code} {' '.join(words)}\n{ended.err}"
    assert ended.code in (0, 1, 2, 3, 4), said
    assert KEY not in ended.out + ended.err, said
    if ended.code in (2, 3):
        failed(ended.code, ended)
        return
    found = strictly(ended.out)
    if words[0] == "load-test":
        counts = found["requests"]
        assert counts["total"] == counts["ok"] + sum(counts["failed"].values()) + counts["censored"], said


@pytest.mark.parametrize("seed", range(14))
def test_any_orders_to_any_server(server: truth.Truth, capsys: pytest.CaptureFixture[str], seed: int):
    """And what was recorded can be shown in every form."""
    words = ["load-test", *drawn(seed, server), "--json"]

    check(perfdoctor(capsys, *words), words)

    if Path("runs").exists():
        for form in FORMS:
            shown = perfdoctor(capsys, "report", "latest", *form)
            assert shown.code in ((0, 1, 4) if "cannot be trusted" in shown.err else (0, 1)), shown.err
            assert KEY not in shown.out + shown.err
            if form in (["--json"], ["--jsonl"]):
                for line in shown.out.splitlines() if form == ["--jsonl"] else [shown.out]:
                    strictly(line)
        for path in store.open_run("latest").path.iterdir():
            assert KEY.encode() not in path.read_bytes(), path


def test_a_diagnosis_by_any_orders(server: truth.Truth, capsys: pytest.CaptureFixture[str]):
    """The same load with the machine watched."""
    words = ["diagnose", *drawn(53, server), "--no-experiments", "--json"]

    check(perfdoctor(capsys, *words), words)
