"""A mistake in the code that calls `model.generate()`, made in the local server's own process.

    [fault]
    use = "scenarios.workloads.generate_fault"
    fault = "host_copies"              # a function of in_process/generate_faults.py
    amount = 256e6                     # its argument, where it has one
    gpu = true                         # skip where there is none

The server's code stays as it is: Python imports `in_process/sitecustomize.py` first, which lays the fault
over transformers once the server has imported it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.workloads import Injection, _in_process
from scenarios.workloads.gpu import require_gpu


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    if options.get("gpu"):
        require_gpu()
    fault = f"{options['fault']}:{options.get('amount', '')}"
    yield Injection(prefix=_in_process.prefix(PERFDOCTOR_FAULT=fault))
