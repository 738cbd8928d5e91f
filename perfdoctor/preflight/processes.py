"""The processes behind a local port, and where on this host their model lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from perfdoctor.probes._processes import command_line, listener_pid, process_tree


@dataclass(frozen=True, slots=True)
class Processes:
    """What could be seen. All empty when nobody is seen to listen, as behind a container's port mapping."""

    pid: int | None = None
    pids: tuple[int, ...] = ()
    command: tuple[str, ...] = ()  # of the listening process
    folder: Path | None = None  # its working directory: relative paths of its command line start here
    environment: Mapping[str, str] = field(default_factory=dict)


def behind(port: int) -> Processes:
    pid = listener_pid(port)
    if pid is None:
        return Processes()
    folder, environment = _surroundings(pid)
    return Processes(pid, process_tree(pid), command_line(pid), folder, environment)


def _surroundings(pid: int) -> tuple[Path | None, Mapping[str, str]]:
    """Working directory and environment; nothing when the process is another user's. Never stored."""
    try:
        process = psutil.Process(pid)
        return Path(process.cwd()), process.environ()
    except (psutil.Error, OSError):
        return None, {}


def locate(source: str, processes: Processes) -> Path | None:
    """The folder or file on this host that a server's name for its weights means.

    A path, relative to the server's working directory, or a hub name that lies in the server's hub cache.
    """
    base = processes.folder or Path("/")
    path = base / Path(source).expanduser()
    if (processes.folder or path.is_absolute()) and path.exists():
        return path.resolve()
    return _cached(source, processes.environment)


def _cached(name: str, environment: Mapping[str, str]) -> Path | None:
    """A hub model's newest snapshot; the order of the variables is huggingface_hub's."""
    home = environment.get("HF_HOME") or f"{environment.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"
    cache = environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE") or f"{home}/hub"
    cache = cache.replace("~", environment.get("HOME") or str(Path.home()), 1)
    folder = Path(cache) / f"models--{name.replace('/', '--')}" / "snapshots"
    found = [path for path in folder.glob("*") if path.is_dir()] if name.count("/") <= 1 else []
    return max(found, key=lambda path: path.stat().st_mtime, default=None)
