"""Another host behind a cable: a network namespace, whose way back to the client may be narrow."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

from scenarios.workloads import Unavailable


@contextlib.contextmanager
def another_host(rate: str | None = None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(its address, the prefix of a command that runs there).

    `rate` of its way back as `tc` writes it: `1mbit`; None: as fast as this machine. A burst of two packets,
    so that the rate holds for small ones too.
    """
    for program in ("ip", "tc") if rate else ("ip",):
        if os.geteuid() != 0 or not shutil.which(program):
            raise Unavailable(f"a network namespace needs root and `{program}` (package iproute2)")
    number = os.getpid() % 60_000
    space, near, far = f"pd{number}", f"pdn{number}", f"pdf{number}"
    net, low = f"10.214.{number // 256}", number % 64 * 4
    _run(f"ip netns add {space}")
    try:
        _run(f"ip link add {near} type veth peer name {far} netns {space}")
        _run(f"ip addr add {net}.{low + 1}/30 dev {near}")
        _run(f"ip link set {near} up")
        _run(f"ip -n {space} addr add {net}.{low + 2}/30 dev {far}")
        _run(f"ip -n {space} link set {far} up")
        if rate:
            _run(f"tc -n {space} qdisc add dev {far} root tbf rate {rate} burst 3200 latency 1s")
        yield f"{net}.{low + 2}", ("ip", "netns", "exec", space)
    finally:
        subprocess.run(["ip", "netns", "del", space], check=False)  # the cable goes with it


def _run(words: str) -> None:
    done = subprocess.run(words.split(), check=False, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"`{words}` fails here: {done.stderr.strip()}")
