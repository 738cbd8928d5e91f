"""Who is watched. The session makes one Subject, hands it to the sampler and fills it in while it learns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perfdoctor.probes._processes import process_tree

if TYPE_CHECKING:
    import httpx

TREE_AGE_S = 1.0  # children come and go rarely; walking /proc at every tick of every probe would cost more


@dataclass(slots=True)
class Subject:
    """A mutable holder: `pid` is None until the server runs, `url` until it answers.

    `pid` is the root of the process tree, `url` the server's base address with or without `/v1`,
    `model_path` the folder or file of the weights where this host can see them.
    """

    pid: int | None = None
    url: str | None = None
    model_path: str | None = None
    remote: bool = False
    engine: str = "unknown"
    transport: Callable[[str], httpx.BaseTransport] | None = None  # to a URL of it; None: the plain way
    log: str | None = None  # the server's log file, where one was named
    _tree: tuple[int, ...] = field(default=(), repr=False)
    _tree_of: int | None = field(default=None, repr=False)
    _tree_at_s: float = field(default=0.0, repr=False)

    def pids(self) -> tuple[int, ...]:
        """The live process tree, root first, at most a second old; empty while there is none."""
        pid, now_s = self.pid, time.monotonic()
        if pid is None:
            return ()
        if pid != self._tree_of or now_s - self._tree_at_s > TREE_AGE_S:
            self._tree, self._tree_of, self._tree_at_s = process_tree(pid), pid, now_s
        return self._tree
