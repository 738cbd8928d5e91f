"""Running the model server with a fault of ours in its own process, without a change of its code."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).with_name("in_process")


def prefix(**environment: str) -> tuple[str, ...]:
    """Put before the server's command line: Python then imports `in_process/sitecustomize.py` first."""
    path = os.pathsep.join(filter(None, (str(FOLDER), os.environ.get("PYTHONPATH"))))
    return ("/usr/bin/env", f"PYTHONPATH={path}", *(f"{name}={value}" for name, value in environment.items()))
