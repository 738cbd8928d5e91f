"""Keeps secrets out of every byte written: exact values are replaced, in all the forms they may take."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote, urlsplit, urlunsplit

MASK = b"[redacted]"


class Redactor:
    """Replaces known secret values in bytes or text. Values shorter than 4 characters are ignored."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[bytes] = set()
        for secret in secrets:
            if len(secret) < 4:
                continue
            for text in (secret, json.dumps(secret)[1:-1], quote(secret, safe="")):
                forms.add(text.encode())
            forms.add(base64.b64encode(secret.encode()))
        self._forms = sorted(forms, key=len, reverse=True)

    def clean_bytes(self, raw: bytes) -> bytes:
        for form in self._forms:
            raw = raw.replace(form, MASK)
        return raw

    def clean(self, text: str) -> str:
        return self.clean_bytes(text.encode("utf-8", "replace")).decode() if self._forms else text


def url_secrets(url: str) -> tuple[str, ...]:
    """Passwords inside a URL's userinfo or its query's values."""
    parts = urlsplit(url)
    values = [pair.partition("=")[2] for pair in parts.query.split("&") if "=" in pair]
    return tuple(v for v in (parts.password, *values) if v)


def clean_url(url: str) -> str:
    """The URL without userinfo and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
