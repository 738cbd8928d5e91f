"""A small server of ours in a process of its own, up while a block runs."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from scenarios.workloads import Unavailable

READY_S = 20.0


@contextlib.contextmanager
def program(
    module: str, words: Sequence[str], host: str = "127.0.0.1", prefix: Sequence[str] = ()
) -> Iterator[str]:
    """`python -m module HOST PORT words...`, one thread to its arithmetic; gives its URL."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [*prefix, sys.executable, "-m", module, host, str(port), *words]
    process = subprocess.Popen(
        command, env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    )
    try:
        _await(process, host, port)
        yield f"http://{host}:{port}"
    finally:
        process.kill()
        process.wait()


def _await(process: subprocess.Popen[bytes], host: str, port: int) -> None:
    ends = time.monotonic() + READY_S
    while time.monotonic() < ends and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host, port), 0.5):
            return
        time.sleep(0.1)
    raise Unavailable(f"the server at {host}:{port} did not start")
