"""Keeps secrets out of every byte written: exact values are replaced, in all the forms they may take."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
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

# Members of a query: `api_key`, `access-token`, not `keyword`, `max_tokens` or `author`.
_KEY_NAMES = re.compile(
    r"(^|[_.-])(api|access|auth)?(key|token|secret|passw(or)?d|pass|auth|authorization|credentials?|signature|"
    r"session(id)?)$",
    re.IGNORECASE,
)
_OPAQUE = re.compile(r"[A-Za-z0-9._~=-]{20,}")


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


def command_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """Values in a server's command line that are keys by the name of their flag or variable."""
    found: list[str] = []
    for word, follows in zip(words, (*words[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        if _KEY_NAMES.search(name.lstrip("-")):
            found += [value] if equals else [follows] if name.startswith("-") else []
    return tuple(value for value in found if value and not value.startswith("-"))


def url_secrets(url: str) -> tuple[str, ...]:
    """Passwords inside a URL's userinfo, and the values of its query that are keys by their name or looks.

    The others stay readable: with `?q=steady` masked, a run could not be repeated from its own scenario.
    """
    parts = urlsplit(url)
    values = [value for name, value in _query(url) if _KEY_NAMES.search(name) or _is_opaque(value)]
    return tuple(v for v in (parts.password, *values) if v)


def has_key_in_query(url: str) -> bool:
    """Whether a member of the query is a key by its name. A `{{variable}}` is none."""
    return any(value and _KEY_NAMES.search(name) for name, value in _query(url))


def _query(url: str) -> list[tuple[str, str]]:
    """Names and values of the query, without those that are templates."""
    pairs = (pair.partition("=") for pair in urlsplit(url).query.split("&"))
    return [(name, value) for name, _, value in pairs if not value.startswith("{{")]


def _is_opaque(value: str) -> bool:
    """As keys look: long, without words, letters and digits mixed."""
    return bool(_OPAQUE.fullmatch(value)) and any(c.isdigit() for c in value) and any(map(str.isalpha, value))


def clean_url(url: str) -> str:
    """The URL without userinfo and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
