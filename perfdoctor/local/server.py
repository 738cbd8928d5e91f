"""The child process: loads one model, tells its parent how that went, and serves it until told to stop.

    python -m perfdoctor.local.server --model tiny --channel-fd N --zero-ns Z

`launch.py` starts it. It ends on SIGTERM, and when its standard input closes, that is, when the parent dies.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from perfdoctor.clock import Clock
from perfdoctor.errors import ModelError
from perfdoctor.local import models
from perfdoctor.local.facts import DTYPE_BYTES, with_sizes
from perfdoctor.local.telemetry import Channel, Known, Ready
from perfdoctor.model import TargetFacts

if TYPE_CHECKING:
    from perfdoctor.local.engine import Engine

FAILED = 3  # exit code, as of every error of the target
PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616D61, -1  # prctl(2), of the Yama security module


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    threading.Thread(target=_end_with_parent, name="lifeline", daemon=True).start()
    _let_siblings_trace()
    channel = Channel(args.channel_fd, Clock(zero_ns=args.zero_ns))
    try:
        _serve(args, channel)
    except ModelError as error:
        if error.__cause__ is not None:
            traceback.print_exc()
        channel.failed(error)
        return FAILED
    return 0


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perfdoctor.local.server")
    parser.add_argument("--model", required=True, help="tiny, tiny:PRESET, shape:NAME or a folder")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0: any free one")
    parser.add_argument("--channel-fd", type=int, required=True, help="open descriptor for the telemetry")
    parser.add_argument("--zero-ns", type=int, required=True, help="the run's zero, of time.perf_counter_ns")
    parser.add_argument("--device", help="cpu, cuda or cuda:N; default: cuda where there is one")
    parser.add_argument(
        "--dtype", choices=DTYPE_BYTES, help="default: bfloat16 on cuda, the model's own on cpu"
    )
    parser.add_argument("--threads", type=int, help="of torch on the CPU; default: torch's own choice")
    parser.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a switch of the model",
    )
    return parser.parse_args(argv)


def _setting(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _end_with_parent() -> None:
    """Nobody writes to our standard input; it ends when the parent does, however it died."""
    sys.stdin.buffer.read()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # also the maker of a tiny model
    os._exit(1)


def _let_siblings_trace() -> None:
    """Where Yama lets only ancestors trace (ptrace_scope 1), py-spy is a sibling and needs to be let in."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_PTRACER, ctypes.c_ulong(PR_SET_PTRACER_ANY), 0, 0, 0)


def _serve(args: argparse.Namespace, channel: Channel) -> None:
    phases = Phases(channel)
    source = models.resolve(args.model)
    with phases("prepare"):
        models.prepare(source)
    facts = early_facts(source)
    channel.send(Known(facts=facts))
    started_s = channel.clock.now()
    with phases("import"):
        try:
            import torch
            import transformers

            from perfdoctor.local import load
            from perfdoctor.local.engine import Engine
            from perfdoctor.local.variants import Variants
        except ImportError as error:
            raise models.not_installed(error) from error
        config = load.read_config(source)
    try:
        if args.threads:
            torch.set_num_threads(args.threads)
        device = load.pick_device(args.device)
        loaded = load.load(source, config, device, load.pick_dtype(args.dtype, device, config), phases)
        engine = Engine(Variants(loaded), dict(args.set), channel)
        if engine.loaded.plan.rehearse:
            with phases("compile"):
                engine.rehearse()
        phases.tell("total", started_s, channel.clock.now() - started_s)
        calibration = _watch_device(channel, device)
    except Exception as error:
        raise load.explain(error) from error
    facts = msgspec.structs.replace(
        facts,
        engine_version=f"transformers {transformers.__version__}, torch {torch.__version__}",
        device=device,
        threads=torch.get_num_threads(),
    )
    facts = with_sizes(facts, loaded.sizes(), loaded.dtype)
    asyncio.run(_answer(engine, source.name, args.port, facts, calibration, channel))


def _watch_device(channel: Channel, device: str) -> dict[str, float | None]:
    """Starts the allocator's samples and measures the copy ceiling, or says why there are none."""
    if not device.startswith("cuda"):
        channel.absent("torch", "the model runs on the CPU, where torch keeps no allocator statistics")
        return {}
    from perfdoctor.local import gpu

    rate = gpu.copy_bytes_per_s(device)
    gpu.watch_allocator(channel, device)
    return {"gpu_copy_bytes_per_s": rate}


async def _answer(
    engine: Engine,
    served: str,
    port: int,
    facts: TargetFacts,
    calibration: dict[str, float | None],
    channel: Channel,
) -> None:
    from perfdoctor.local.api import application, listen

    _, url = await listen(application(engine, served), port)
    channel.send(Ready(facts=msgspec.structs.replace(facts, url=url), calibration=calibration))
    await asyncio.Event().wait()  # SIGTERM ends the process


def early_facts(source: models.Source) -> TargetFacts:
    """What is known before anything is loaded, so that the parent can look at the page cache first."""
    return TargetFacts(
        kind="local",
        engine="perfdoctor-local",
        engine_source="started by this run",
        model=source.name,
        model_path=None if source.weights_random else str(source.folder.resolve()),
        weights_random=source.weights_random,
        file_bytes=sum(path.stat().st_size for path in source.weight_files()) or None,
        pid=os.getpid(),
        pids=(os.getpid(),),
    )


class Phases:
    """`with phases("weights"):` tells the run when that began and how long it took, as soon as it ends."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started_s = self._channel.clock.now()
        yield
        self.tell(name, started_s, self._channel.clock.now() - started_s)

    def tell(self, name: str, started_s: float, seconds: float) -> None:
        self._channel.sample("load", {"started_s": started_s, "seconds": seconds}, {"phase": name})


if __name__ == "__main__":
    sys.exit(main())
