"""Starts a real server as a child process, waits until it answers a completion, and stops it by its pids."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import environ
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).parents[2]
GRACE_S = 5.0
READY_S = 90.0  # transformers needs 4 s alone, several times that beside other work


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    model: str  # the name to ask for
    pid: int
    log: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str],
    port: int,
    model: str,
    log: Path,
    env: Mapping[str, str] | None = None,
    temperature: float = 1.0,
) -> Iterator[Server]:
    """The server while the block runs. `temperature` is the warm-up request's, as for some it sticks."""
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as sink:
        child = subprocess.Popen(
            command,
            stdout=sink,
            stderr=sink,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            env={**environ, **(env or {})},
        )
    try:
        _await_ready(url, model, temperature, child, log)
        yield Server(url, model, child.pid, log)
    finally:
        stop(child)


def stop(child: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the server, then SIGKILL to whatever is left of its tree."""
    family = [psutil.Process(child.pid)] if child.poll() is None else []
    with suppress(psutil.NoSuchProcess):
        family += [member for process in family for member in process.children(recursive=True)]
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE_S)
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    child.wait(GRACE_S)


def _await_ready(url: str, model: str, temperature: float, child: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + READY_S
    while not _healthy(url):
        if child.poll() is not None or time.monotonic() > ends:
            raise RuntimeError(
                f"{child.args!r} is not ready; its log ends:\n{log.read_text('utf-8', 'replace')[-2000:]}"
            )
        time.sleep(0.05)
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Say one word."}],
        "max_tokens": 2,
        "temperature": temperature,
    }
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=READY_S, trust_env=False)
    answer.raise_for_status()


def _healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=2, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def serve_by_hand(command: Sequence[str], env: Mapping[str, str] | None = None) -> int:
    """Runs a server in the foreground until Ctrl-C."""
    print("+", *command, file=sys.stderr)
    with suppress(KeyboardInterrupt):
        return subprocess.call(command, env={**environ, **(env or {})})
    return 130
