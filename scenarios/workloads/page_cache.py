"""A server whose weights are mapped from a file, in a container with or without room for them.

    [fault]
    use = "scenarios.workloads.page_cache"
    room = 0.5                         # of the file, beside the server's own memory; 1.5: the healthy twin

llama.cpp with a model of 400 MB, whose file is read through the control group's share of the page cache. The
limit is set once the server is up. Needs root and the memory controller of cgroup v1, or v2 (not tried).
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scenarios.workloads import Injection, _cgroup, throttle
from scenarios.workloads.llamacpp import require_llamacpp

V1 = Path("/sys/fs/cgroup/memory")


@contextlib.contextmanager
def inject(options: Mapping[str, Any]) -> Iterator[Injection]:
    require_llamacpp()
    from tests.servers import _models, llamacpp

    root = V1 if (V1 / "memory.limit_in_bytes").exists() else _cgroup.V2
    file = _models.gguf("small")
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(_cgroup.made(root, "memory"))
        log = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="perfdoctor-"))) / "llamacpp.log"
        throttle.evict([file])
        enter = _cgroup.entering(group)
        server = stack.enter_context(llamacpp.serving(file, log, slots=1, prefix=enter))
        room = int(float(options["room"]) * file.stat().st_size)
        _limit(group, _own_memory(group) + room)
        yield Injection(endpoint=server.url)


def _own_memory(group: Path) -> int:
    """What the group's processes hold beside files: it cannot be dropped."""
    text = (group / "memory.stat").read_text()
    keys = dict(line.split() for line in text.splitlines())
    return int(keys.get("total_rss") or keys["anon"])


def _limit(group: Path, size: int) -> None:
    name = "memory.limit_in_bytes" if group.parent == V1 else "memory.max"
    (group / name).write_text(str(size))
