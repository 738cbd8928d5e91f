"""Faults laid over generate() from outside: they reach a Python process that imports transformers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.workloads import generate_fault

ROOT = Path(__file__).parents[2]
PROBE = """
from transformers.generation import utils
print("wrapped", "generate_faults" in utils.GenerationMixin.generate.__code__.co_filename)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "wrapped"), [("no_kv_cache", True), ("empty_cache", True), ("native_thread", True), ("", False)]
)
def test_a_fault_lies_over_generate_and_nothing_else_changes(fault: str, wrapped: bool) -> None:
    """Python starts as ever; only once transformers is imported is its generate() replaced."""
    prefix: tuple[str, ...] = ()
    if fault:
        with generate_fault.inject({"fault": fault}) as injection:
            prefix = injection.prefix

    done = subprocess.run(
        [*prefix, sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert f"wrapped {wrapped}" in done.stdout
