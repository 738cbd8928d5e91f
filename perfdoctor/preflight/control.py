"""Control calls to a server: one small GET or POST at a time, with every failure said in the user's words.

For the model list, the version and the like; never for streams, whose stamps httpx would blur. Proxy
variables of the environment are ignored, as the load generator ignores them. No secret reaches a message.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx
import msgspec

from perfdoctor.errors import NotOpenai, TargetError, UsageError
from perfdoctor.loadgen.transports._tls import make_context
from perfdoctor.model import Wire
from perfdoctor.preflight.failures import CONNECT_S, READ_S, explain, not_answered
from perfdoctor.redact import Redactor, clean_url, has_key_in_query, header_secrets, url_secrets

BODY_LIMIT = 4 * 2**20  # the longest known answer, vLLM's /metrics, has 51 kB


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `body` is None when it is no JSON; header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    body: Any = None

    @property
    def is_page(self) -> bool:
        """A web page, made for people."""
        return "html" in self.headers.get("content-type", "") or self.text.lstrip()[:1] == "<"


def normalise(endpoint: str) -> str:
    """The server's root: a scheme is added when there is none; `/v1` and slashes at the end are taken off."""
    parts = _split(endpoint)
    if parts.query or parts.fragment:
        raise UsageError(
            "the endpoint's URL goes on after its path",
            "Requests go to paths under the endpoint, where a ? or # part would be lost.",
            "leave it out; a key goes by variable: --api-key-env NAME",
        )
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme.lower()}://{parts.netloc.removesuffix(':')}{path}"


def whole_url(endpoint: str) -> str:
    """The same for any HTTP, where path and query are the user's own; both may hold `{{variables}}`."""
    parts = _split(endpoint)
    if has_key_in_query(endpoint):
        raise UsageError(
            "the URL's query holds what looks like a key",
            "It would stay readable in the shell's history, and be written into the run folder.",
            "send it as a header: --api-key-env NAME",
        )
    return urlunsplit(
        (parts.scheme.lower(), parts.netloc.removesuffix(":"), parts.path or "/", parts.query, "")
    )


def _split(endpoint: str) -> SplitResult:
    url = endpoint.strip()
    if "://" not in url.partition("?")[0]:
        url = "http://" + url
    try:
        parts = urlsplit(url)
        usable = parts.scheme.lower() in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, an unclosed [
        usable = False
    if not usable:
        # the text itself is not repeated: it may hold a password at an unexpected place
        raise NotOpenai("the endpoint is no usable URL", "", "write for example http://127.0.0.1:8000")
    if "@" in parts.netloc:
        raise UsageError(
            "the endpoint's URL holds a user name or password",
            "It would stay readable in the shell's history and in the list of processes.",
            "leave it out; a bearer key goes by variable: --api-key-env NAME",
        )
    return parts


def transport(wire: Wire, url: str) -> httpx.HTTPTransport:
    """The way to a URL, as the load goes it. UsageError for certificates that cannot be used."""
    verify = make_context(wire) if url.startswith("https") else True
    return httpx.HTTPTransport(verify=verify, proxy=wire.proxy, uds=wire.unix_socket)


class Control:
    """Calls under one root. `root` and every text that comes out are free of userinfo and keys."""

    def __init__(
        self,
        endpoint: str,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        wire: Wire | None = None,
    ) -> None:
        self._url, self._wire = normalise(endpoint), wire or Wire()
        self.root = clean_url(self._url)
        keys = header_secrets(headers or {})
        self.clean = Redactor([*([secret] if secret else []), *keys, *url_secrets(self._url)]).clean
        sent = {"Accept": "application/json, */*", "Accept-Encoding": "identity", **(headers or {})}
        if secret:
            sent["Authorization"] = f"Bearer {secret}"
        self._client = httpx.Client(
            headers=sent,
            timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
            trust_env=False,
            transport=transport(self._wire, self._url),
        )

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.close()

    def get(self, path: str) -> Answer:
        """The answer, of whatever status. Raises Unreachable, TlsMismatch or NotOpenai when there is none."""
        return self._call("GET", path)

    def post(self, path: str, body: object) -> Answer:
        return self._call("POST", path, body)

    def try_get(self, path: str) -> Answer | None:
        """The answer, or None when there was none."""
        try:
            return self._call("GET", path)
        except TargetError:
            return None

    def get_all(self, paths: Iterable[str], within_s: float) -> dict[str, Answer]:
        """All at once, so that they take no longer than `within_s`; those without answer are left out."""
        calls = {path: self._start("GET", path) for path in paths}
        ends = time.monotonic() + within_s
        for thread, _ in calls.values():
            thread.join(max(0.0, ends - time.monotonic()))
        return {path: end[0] for path, (_, end) in calls.items() if end and isinstance(end[0], Answer)}

    def _call(self, method: str, path: str, body: object = None) -> Answer:
        thread, end = self._start(method, path, body)
        thread.join(READ_S)
        if not end:
            raise not_answered(self.root)
        if isinstance(end[0], Exception):
            raise end[0]
        return end[0]

    def _start(
        self, method: str, path: str, body: object = None
    ) -> tuple[threading.Thread, list[Answer | Exception]]:
        """In a thread that can be left behind: httpx limits the wait for each piece, and a server that sends
        a byte of a header now and then is never late. The list is empty until the call has ended."""
        end: list[Answer | Exception] = []

        def call() -> None:
            try:
                end.append(self._exchange(method, path, body))
            except Exception as error:  # of any kind: raised again where it was asked for
                end.append(error)

        thread = threading.Thread(target=call, name="control", daemon=True)
        thread.start()
        return thread, end

    def _exchange(self, method: str, path: str, body: object) -> Answer:
        ends = time.monotonic() + READ_S
        raw = bytearray()
        try:
            with self._client.stream(method, self._url + path, json=body) as response:
                for piece in response.iter_bytes():
                    raw += piece
                    if len(raw) > BODY_LIMIT or time.monotonic() > ends:
                        break
        except (httpx.RequestError, httpx.InvalidURL) as exc:
            raise explain(exc, self.root, self._wire) from exc
        text = self.clean(raw.decode("utf-8", "replace"))
        headers = {name.lower(): self.clean(value) for name, value in response.headers.items()}
        return Answer(response.status_code, headers, text, _parsed(text))


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
