"""From the end of what was watched to the printed verdict, on a real server: ten seconds at most."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.servers._server import Server

pytestmark = [pytest.mark.server, pytest.mark.alone]
AT_MOST_S = 10.0  # takes 0.3 to 1.5 s where nothing else runs


def verdict_at(words: tuple[str, ...], server: Server, cwd: Path) -> tuple[float, dict[str, Any]]:
    """(when its line was printed, on the run's clock; run.json)."""
    target = ("--endpoint", server.url, *words, "-o", str(cwd))
    command = [sys.executable, "-m", "perfdoctor", "diagnose", *target]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout
        at_s = next((time.perf_counter() for line in running.stdout if line.startswith("Verdict")), None)
        running.stdout.read()
    facts = json.loads((cwd / "run.json").read_text())
    assert at_s is not None
    return at_s - facts["zero_ns"] / 1e9, facts


@pytest.mark.parametrize(
    ("words", "last"),
    [
        (("-c", "4", "--duration", "6s", "--no-experiments"), "steady"),
        (("-c", "4", "--duration", "6s"), "experiment"),
        (("--no-load", "--duration", "4s"), "watch"),
    ],
)
def test_a_verdict_follows_within_seconds(
    words: tuple[str, ...], last: str, llamacpp: Server, tmp_path: Path
) -> None:
    """Of the load's end, of the last experiment's, or of watching; experiments are announced and apart."""
    printed_s, facts = verdict_at(words, llamacpp, tmp_path / "run")

    ended_s = max(phase["end_s"] for phase in facts["phases"])
    assert last == facts["phases"][-1]["name"]
    assert ended_s <= facts["recorded_s"] <= printed_s
    assert printed_s - ended_s < AT_MOST_S
