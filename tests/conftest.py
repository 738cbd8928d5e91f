"""Puts the repository's root on the path, so that every test can import `tests.factories`."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Heed Ctrl-C. A shell that starts the suite in the background ignores it, and commands under test would
    inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
