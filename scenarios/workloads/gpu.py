"""An NVIDIA GPU is there; nothing is broken, or the server's environment is.

[fault]
use = "scenarios.workloads.gpu"
environment = { PYTORCH_NO_CUDA_MEMORY_CACHING = "1" }
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.workloads import Injection, Unavailable


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    require_gpu()
    environment = options.get("environment", {})
    words = tuple(f"{name}={value}" for name, value in environment.items())
    yield Injection(prefix=("/usr/bin/env", *words) if words else ())


def require_gpu() -> None:
    """Unavailable where no driver shows one."""
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise Unavailable(f"needs an NVIDIA GPU ({error})") from error
    if not count:
        raise Unavailable("needs an NVIDIA GPU; the driver shows none")
