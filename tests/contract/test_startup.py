"""`--help` must stay cheap: nothing heavy is imported before a command's body runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "transformers", "pandas", "numpy", "httpx", "aiohttp", "pynvml", "psutil")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["diagnose", "--help"], ["load-test", "-h"], ["scenario", "--help"], ["report", "-h"]],
)
def test_help_imports_nothing_heavy(arguments: list[str]):
    """Every help page leaves the heavy packages unloaded."""
    code = (
        "import sys\nsys.argv = ['perfdoctor', *sys.argv[1:]]\nfrom perfdoctor.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"print('LOADED', [m for m in {HEAVY!r} if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )

    assert "LOADED []" in done.stdout, done.stderr
    assert "Usage:" in done.stdout


def test_a_ctrl_c_during_the_imports_shows_no_traceback(tmp_path: Path):
    """The process ends by the signal and says nothing, while the command line is still being imported."""
    (tmp_path / "typer.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "perfdoctor"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and "importing" in process.stdout.readline()

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)

    assert (-signal.SIGINT, "") == (process.returncode, errors)


def test_the_base_install_needs_no_torch():
    """torch and transformers are the extra `local`: no base dependency names them."""
    from importlib.metadata import requires

    base = [line for line in requires("perfdoctor") or [] if "extra ==" not in line]

    assert base
    assert not [line for line in base if line.startswith(("torch", "transformers"))]
