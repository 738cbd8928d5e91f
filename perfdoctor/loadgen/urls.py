"""Where to send requests. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def completion_url(endpoint: str, path: str) -> str:
    """Where to post, from an endpoint with or without `/v1`, or with the whole path already."""
    parts = urlsplit(endpoint)
    base = parts.path.rstrip("/").removesuffix(path).removesuffix("/v1")
    return urlunsplit((parts.scheme, parts.netloc, base + "/v1" + path, parts.query, ""))


def cut(url: str) -> tuple[str, str]:
    """(origin, path with query) of an absolute URL."""
    parts = urlsplit(url)
    path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    return f"{parts.scheme}://{parts.netloc}", path
