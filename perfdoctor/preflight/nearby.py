"""Looks for a server on this host, at the ports that servers use when nothing else is said."""

from __future__ import annotations

import socket
from typing import NamedTuple

from perfdoctor.errors import TargetError
from perfdoctor.preflight.control import Control

# 8000 vLLM, transformers, most of Python · 8080 llama.cpp, TGI in a container · 30000 SGLang · 11434 ollama ·
# 3000 TGI · 8001 and 5000 habits
PORTS = (8000, 8080, 30000, 11434, 3000, 8001, 5000)
KNOCK_S = 0.3  # on loopback a closed port refuses at once


class Search(NamedTuple):
    """`url` of the first OpenAI-compatible server, or None; `tried` says what was found at each port."""

    url: str | None
    tried: tuple[str, ...]


def find_local_server(ports: tuple[int, ...] = PORTS) -> Search:
    tried: list[str] = []
    for port in ports:
        url = f"http://127.0.0.1:{port}"
        said = _knock(port) or _ask(url)
        tried.append(f"{port} {said or 'serves models'}")
        if said is None:
            return Search(url, tuple(tried))
    return Search(None, tuple(tried))


def _knock(port: int) -> str | None:
    """Why no connection came about, or None."""
    try:
        socket.create_connection(("127.0.0.1", port), KNOCK_S).close()
    except OSError:
        return "closed"
    return None


def _ask(url: str) -> str | None:
    """Why it is no server for us, or None. One that wants a key is one."""
    try:
        with Control(url) as control:
            answer = control.get("/v1/models")
    except TargetError as exc:
        return type(exc).__name__.lower()
    if answer.status in (401, 403) or (answer.status == 200 and isinstance(answer.body, dict)):
        return None
    return f"answers {answer.status}, no list of models"
