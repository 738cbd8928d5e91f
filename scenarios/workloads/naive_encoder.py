"""A tokenizer in pure Python in the local server: byte-pair encoding that looks at all pairs for each merge.

    [fault]
    use = "scenarios.workloads.naive_encoder"

The server's code stays as it is: Python imports `in_process/sitecustomize.py` first, which lays the encoder
over transformers' own. Without the fault the same prompts are the healthy twin.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.workloads import Injection, _in_process


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    yield Injection(prefix=_in_process.prefix(PERFDOCTOR_TOKENIZER="naive"))
