"""llama.cpp's own HTTP server, from the wheel `xllamacpp`: native threads inside a Python process.

By hand: `python -m tests.servers.llamacpp --port 8104`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.servers import _models
from tests.servers._server import Server, free_port, running

ALIAS = "tiny"


@contextmanager
def serving(gguf: Path, log: Path, slots: int = 4, prefix: Sequence[str] = ()) -> Iterator[Server]:
    """`prefix` is put before the command, such as one that enters a control group first."""
    port = free_port()
    command = [
        *prefix,
        sys.executable,
        "-m",
        __name__,
        "--gguf",
        str(gguf),
        "--port",
        str(port),
        "--slots",
        str(slots),
    ]
    with running(command, port, ALIAS, log) as server:
        yield server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gguf", type=Path, help="default: the tiny model, made when missing")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--slots", type=int, default=4, help="requests served together")
    # more than one, and ggml's spin barriers collapse as soon as anything else runs
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    _serve(args.gguf or _models.gguf(), args.port, args.slots, args.threads)


def _serve(gguf: Path, port: int, slots: int, threads: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.hostnames, params.port, params.model_alias = ["127.0.0.1"], port, {ALIAS}
    params.n_parallel, params.n_ctx = slots, 4096 * slots  # the context is divided among the slots
    params.endpoint_metrics = params.endpoint_slots = params.endpoint_props = True
    params.use_jinja, params.ui = True, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    print("listening", server.listening_address, flush=True)
    # the server's destructor waits for open connections, up to minutes
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    threading.Event().wait()


if __name__ == "__main__":
    main()
