"""Keeps secrets out of every byte written: exact values are replaced, in all the forms they may take."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

MASK = b"[redacted]"
MIN_PART = 8  # characters; shorter pieces of a header are words like Bearer

# Members of our records whose values are words of our own: a key `chat` must not make them unreadable.
OWN_WORDS = frozenset({
    "api", "command", "engine", "kind", "name", "outcome", "perfdoctor", "phase", "probe", "state", "status",
    "token_source", "unit", "wall_zero",
})  # fmt: skip
_SECRET_NAMES = re.compile(r"auth|key|token|secret|cookie|pass|credential|session", re.IGNORECASE)


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

    def found_in(self, raw: bytes) -> bool:
        return any(form in raw for form in self._forms)

    def clean_tree(self, value: Any) -> Any:
        """Builtin types with their texts cleaned; names of members, numbers and our own words stay."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, (list, tuple)):
            return [self.clean_tree(item) for item in value]
        if isinstance(value, dict):
            return {k: v if _is_own(k, v) else self.clean_tree(v) for k, v in value.items()}
        return value


def _is_own(member: str, value: object) -> bool:
    return member in OWN_WORDS and isinstance(value, str)


def header_secrets(headers: Mapping[str, str]) -> tuple[str, ...]:
    """What must not be repeated of extra headers: long values, all of a header that is named like a key, and
    the parts of such a value, since a server may repeat the key without its `Bearer`."""
    found: list[str] = []
    for name, value in headers.items():
        if _SECRET_NAMES.search(name):
            parts = [part for part in re.split(r"[\s;,]+", value) if len(part) >= MIN_PART]
            found += [value, *parts, *(part.partition("=")[2] for part in parts)]
        elif len(value) >= MIN_PART:
            found.append(value)
    return tuple(text for text in found if text)


def masked_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """A command line without the values of its headers, whatever they are."""
    found: list[str] = []
    for argument in arguments:
        after_flag = bool(found) and found[-1] == "--header"
        name, colon, _ = argument.partition(":")
        is_header = colon and (after_flag or name.startswith("--header="))
        found.append(f"{name}: {MASK.decode()}" if is_header else argument)
    return tuple(found)


def url_secrets(url: str) -> tuple[str, ...]:
    """Passwords inside a URL's userinfo or its query's values."""
    parts = urlsplit(url)
    values = [pair.partition("=")[2] for pair in parts.query.split("&") if "=" in pair]
    return tuple(v for v in (parts.password, *values) if v)


def has_key_in_query(url: str) -> bool:
    """Whether a member of the query is named like a key."""
    pairs = (pair.partition("=") for pair in urlsplit(url).query.split("&"))
    return any(value and _SECRET_NAMES.search(name) for name, _, value in pairs)


def clean_url(url: str) -> str:
    """The URL without userinfo and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
