"""`transformers serve`: a Python server whose every step runs under the GIL.

Plain, it answers one request after another; with continuous batching, several together. There the sampling
parameters of the first request stick for all later ones, so the warm-up's temperature is the one that counts.

By hand: `python -m tests.servers.transformers_serve --port 8101 [--batching]`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.servers import _models
from tests.servers._server import Server, free_port, running, serve_by_hand

# One compute thread: two spin on their barriers, and answers take ten times as long beside other work
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
# A bounded pool: without it the first request takes 12 s and the process 4.9 GB
BATCHING = (
    "--continuous-batching",
    "--cb-num-blocks=256",
    "--cb-block-size=32",
    "--cb-max-batch-tokens=512",
)


def command_for(model: Path, port: int, batching: bool) -> list[str]:
    program = Path(sys.executable).with_name("transformers")
    basic = [str(program), "serve", str(model), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    return [*basic, *(BATCHING if batching else ())]


@contextmanager
def serving(
    model: Path,
    log: Path,
    batching: bool = False,
    temperature: float = 1.0,
    fault: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """`fault`: environment variables that break it."""
    port = free_port()
    env = {**ENVIRONMENT, **(fault or {})}
    with running(command_for(model, port, batching), port, str(model), log, env, temperature) as server:
        yield server


def gil_hog(when: Path) -> dict[str, str]:
    """The fault of a thread that spins under the interpreter lock, from when the file exists."""
    return {"PYTHONPATH": str(Path(__file__).with_name("gil_hog")), "GIL_HOG_WHEN": str(when)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="a folder; default: the tiny model, made when missing")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--batching", action="store_true", help="continuous batching")
    args = parser.parse_args()
    return serve_by_hand(command_for(args.model or _models.tiny(), args.port, args.batching), ENVIRONMENT)


if __name__ == "__main__":
    sys.exit(main())
