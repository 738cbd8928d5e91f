"""A thread beside the model's: this folder comes first on the PYTHONPATH of a Python server.

PERFDOCTOR_THREAD says what the thread does: `spin` computes in Python and rarely lets the interpreter lock
go; `hash` computes in native code with the lock released. It begins a few seconds after the server's start,
so that loading is undisturbed.
"""

import os
import threading
import time

START_S = 8.0
BLOCK = b"x" * 2**20  # hashlib releases the lock above 2,047 bytes


def _spin() -> None:
    while True:
        sum(range(2000))


def _hash() -> None:
    import hashlib

    while True:
        hashlib.sha256(BLOCK).digest()


def _run(work: str) -> None:
    time.sleep(START_S)
    {"spin": _spin, "hash": _hash}[work]()


if work := os.environ.pop("PERFDOCTOR_THREAD", ""):
    threading.Thread(target=_run, args=(work,), name="rival", daemon=True).start()
