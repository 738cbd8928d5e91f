"""A second thread in the process that serves the local model.

[fault]
use = "scenarios.workloads.python_thread"
work = "spin"                      # or "hash": native code that releases the interpreter lock
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scenarios.workloads import Injection

FOLDER = Path(__file__).with_name("in_process")


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    yield Injection(prefix=("/usr/bin/env", f"PYTHONPATH={FOLDER}", f"PERFDOCTOR_THREAD={options['work']}"))
