"""A paced server, and load tests of it within this process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfdoctor import store
from tests.e2e.flags._loads import UNTRUSTED, Load, Run
from tests.inside import perfdoctor
from tests.servers import truth


@pytest.fixture(scope="session")
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
