"""Runs perfdoctor as a person does, on a server that somebody else started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

TRIES = 2  # this machine is small and has other work: a run whose client starved is made again
UNTRUSTED = 4


def perfdoctor(*words: str, cwd: Path, prefix: Sequence[str] = ()) -> tuple[int, dict[str, Any], str]:
    """(exit code, JSON from stdout, stderr) of a command with --json; runs land in `cwd`/runs."""
    cwd.mkdir(exist_ok=True)
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "perfdoctor", *words, "--json"],
        cwd=cwd,
        env={**os.environ, "PERFDOCTOR_RUNS": str(cwd / "runs")},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, UNTRUSTED), done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def diagnose(endpoint: str, *words: str, cwd: Path) -> dict[str, Any]:
    """A diagnosis that can be trusted; the test is skipped where the machine does not allow one."""
    for _ in range(TRIES):
        _, found, _ = perfdoctor("diagnose", "--endpoint", endpoint, *words, cwd=cwd)
        if found["verdict"]["status"] != "untrusted":
            return found
    pytest.skip(f"this machine is too busy to measure on: {found['trust']['reasons']}")


def load_test(endpoint: str, *words: str, cwd: Path) -> dict[str, Any]:
    return perfdoctor("load-test", "--endpoint", endpoint, *words, cwd=cwd)[1]


def hits(diagnosis: dict[str, Any]) -> set[str]:
    """Rules that hit, those about the measurement included."""
    return {finding["rule"] for finding in diagnosis["findings"]}


def signal(diagnosis: dict[str, Any], name: str) -> dict[str, Any]:
    return next(s for s in diagnosis["signals"] if s["name"] == name)
