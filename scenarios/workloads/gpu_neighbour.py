"""Another program on the GPU that serves the model.

    [fault]
    use = "scenarios.workloads.gpu_neighbour"
    work = "spin"

`spin` runs a kernel of one thread without end: utilization.gpu reads 100 %, and one multiprocessor has work.
`copy` moves 2 GB within the GPU's memory, `gemm` multiplies matrices up to the power cap. Run by hand:
`python -m scenarios.workloads.gpu_neighbour copy`; it ends with its standard input.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scenarios.workloads import Injection, Unavailable
from scenarios.workloads.gpu import require_gpu

BATCH = 8  # operations between two waits, so that the queue stays short
COPY_BYTES = 2 << 30
SIDE = 8192  # of the matrices
SPIN_CYCLES = 2_000_000  # about a millisecond


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    require_gpu()
    command = [sys.executable, "-m", "scenarios.workloads.gpu_neighbour", str(options["work"])]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != b"working":
            raise Unavailable(f"the neighbour did not start (exit code {process.wait(10)})")
        yield Injection()
    finally:
        process.kill()
        process.wait()


def _work(kind: str) -> Callable[[], Any]:
    """One operation on the GPU, queued."""
    import torch

    if kind == "spin":
        return lambda: torch.cuda._sleep(SPIN_CYCLES)
    if kind == "copy":
        source = torch.zeros(COPY_BYTES, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        return lambda: target.copy_(source)
    if kind == "gemm":
        a, b = (torch.randn(SIDE, SIDE, dtype=torch.bfloat16, device="cuda") for _ in range(2))
        out = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=out)
    raise SystemExit(f"work must be spin, copy or gemm, not {kind}")


def main() -> None:
    import torch

    work = _work(sys.argv[1])
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    work()
    torch.cuda.synchronize()
    sys.stdout.write("working\n")
    sys.stdout.flush()
    while not ended.is_set():
        for _ in range(BATCH):
            work()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
