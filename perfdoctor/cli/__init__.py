"""The command line: one file per command, each a typer signature and its exit codes.

Do not import anything heavy here: every other import sits inside a command's body, so that `--help` stays
fast. `tests/contract/test_startup.py` holds that.
"""

from perfdoctor.cli import (
    calibrate,
    check,
    compare,
    diagnose,
    explain,
    load_test,
    report,
    scenario,
    sweep,
    verify,
)
from perfdoctor.cli._app import INTERRUPTED, app
from perfdoctor.cli._main import INTERNAL, main

__all__ = [
    "INTERNAL", "INTERRUPTED", "app", "calibrate", "check", "compare", "diagnose", "explain", "load_test",
    "main", "report", "scenario", "sweep", "verify",
]  # fmt: skip
