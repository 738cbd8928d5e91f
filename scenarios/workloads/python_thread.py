"""A second thread in the process that serves the local model.

[fault]
use = "scenarios.workloads.python_thread"
work = "spin"                      # or "hash": native code that releases the interpreter lock
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.workloads import Injection, _in_process


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    yield Injection(prefix=_in_process.prefix(PERFDOCTOR_THREAD=str(options["work"])))
