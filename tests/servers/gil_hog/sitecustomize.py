"""A thread that competes for the interpreter lock: put this folder first on a Python server's PYTHONPATH.

It begins when the file named by GIL_HOG_WHEN exists, so that the server starts undisturbed, and spins half of
the time, so that it still answers.
"""

import os
import threading
import time

SPIN_S = REST_S = 0.02
POLL_S = 0.1


def _hog(when: str) -> None:
    while not os.path.exists(when):  # noqa: PTH110 - runs in every interpreter's start: no more imports
        time.sleep(POLL_S)
    while True:
        until = time.monotonic() + SPIN_S
        while time.monotonic() < until:
            pass
        time.sleep(REST_S)


if when := os.environ.get("GIL_HOG_WHEN"):
    threading.Thread(target=_hog, args=(when,), name="gil-hog", daemon=True).start()
