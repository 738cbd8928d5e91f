"""A server that does well: llama.cpp with a tiny model, a slot for every user, one compute thread.

[fault]
use = "scenarios.workloads.llamacpp"
slots = 4
"""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scenarios.workloads import Injection, Unavailable


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    require_llamacpp()
    from tests.servers import _models, llamacpp

    with tempfile.TemporaryDirectory(prefix="perfdoctor-") as folder:
        log = Path(folder) / "llamacpp.log"
        with llamacpp.serving(_models.gguf(), log, slots=int(options["slots"])) as server:
            yield Injection(endpoint=server.url)


def require_llamacpp() -> None:
    for package in ("xllamacpp", "gguf"):
        if importlib.util.find_spec(package) is None:
            raise Unavailable(f"needs the package {package}: pip install 'perfdoctor[test]'")
