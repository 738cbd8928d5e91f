"""Says why a target was given up: what happened, the likely why, the thing to do. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from perfdoctor.errors import (
    NotOpenai,
    PerfdoctorError,
    Refused,
    ServerDied,
    TlsMismatch,
    UnknownModel,
    Unreachable,
)
from perfdoctor.loadgen.transports._transport import HTTP2_PREFIX, TLS_PREFIX
from perfdoctor.model import RequestRecord

_NAMES_MODEL = re.compile(r"model|pinned", re.IGNORECASE)
_DENIES_IT = re.compile(
    r"not exist|not found|unknown|no such|not loaded|not supported|invalid|unavailable|pinned", re.IGNORECASE
)
# what plain HTTP meets at a TLS port: a TLS alert, or a web server's own words
_SPEAKS_TLS = ("\\x15\\x03", "plain HTTP request was sent to HTTPS", "HTTP request to an HTTPS")


def server_died(url: str, record: RequestRecord) -> PerfdoctorError:
    return ServerDied(
        f"the server at {url} no longer accepts connections: {record.error}",
        "It answered before, so it crashed, was killed (often by the out-of-memory killer) or was stopped.",
        "read the end of the server's log and `dmesg | grep -i oom`; what was measured until then is kept",
    )


def explain(record: RequestRecord, url: str, model: str, has_key: bool) -> PerfdoctorError:
    """The error for a target that answered every request like this record."""
    text = record.error or ""
    if text.startswith(TLS_PREFIX) or any(mark in text for mark in _SPEAKS_TLS):
        return _tls(url, text.removeprefix(TLS_PREFIX))
    if text.startswith(HTTP2_PREFIX):
        return NotOpenai(
            f"{url} does not understand HTTP/2: {text.removeprefix(HTTP2_PREFIX)}",
            "--http2 speaks it from the first byte on; most servers without TLS, and many with it, do not.",
            "leave --http2 out",
        )
    if record.outcome.startswith("http_"):
        if record.status in (400, 404, 422) and _NAMES_MODEL.search(text) and _DENIES_IT.search(text):
            return UnknownModel(
                f"the server at {url} does not serve a model named '{model}': {text}",
                "A request must name a model as the server lists it, which need not be its folder.",
                f"list the names with `curl -s {_models(url)}`, then pass --model NAME",
            )
        return _http(record.status or 0, url, text, has_key)
    return _OTHER.get(record.outcome, _unreadable)(url, text)


def _models(url: str) -> str:
    """Where to look by hand: the list of models, or the URL itself where it is of no OpenAI API."""
    base, found, _ = url.partition("?")[0].rpartition("/v1/")
    return f"{base}/v1/models" if found else url


def _tls(url: str, text: str) -> PerfdoctorError:
    if "certificate" in text.lower():
        return TlsMismatch(
            f"the certificate of {url} is not trusted here: {text}",
            "It is self-signed, expired, or made for another host name.",
            "use the name in the certificate, name its authority with --ca-file, or do without: --insecure",
        )
    other = "http" if url.startswith("https") else "https"
    return TlsMismatch(
        f"{url} and the server disagree about TLS: {text}",
        f"The port most likely speaks {other}.",
        f"try the endpoint with {other}://",
    )


def _unreachable(url: str, text: str) -> PerfdoctorError:
    why = "The port is closed, the host name is wrong, or the server is still loading its model."
    if url.startswith("https") and "timeout" in text:
        why = "A firewall drops the packets, or the port speaks plain http and waits for more."
    return Unreachable(
        f"nothing answers at {url}: {text}",
        why,
        f"check with: curl -v {_models(url)}",
    )


def _silent(url: str, text: str) -> PerfdoctorError:
    return Unreachable(
        f"the server at {url} accepts connections but finished no answer in time",
        "It hangs, is overloaded by others, or needs longer than the time limit for one answer.",
        "send one request with curl and watch it; raise --timeout if the model is that slow",
    )


def _http(status: int, url: str, text: str, has_key: bool) -> PerfdoctorError:
    why, do = _advice(status, has_key)
    told = f": {text}" if text else ""
    return Refused(f"the server at {url} answered every request with HTTP {status}{told}", why, do)


def _advice(status: int, has_key: bool) -> tuple[str, str]:
    """(why, do) of an HTTP status."""
    if status in (401, 403) and has_key:
        return "The key that was sent is not accepted.", "check the value of the variable in --api-key-env"
    if 300 <= status < 400:
        return "It redirects, and redirects are not followed.", "give the address it points to as --endpoint"
    if status >= 500:
        return (
            "The server, or the proxy before it, fails on this request.",
            "read the server's log at the time of the run; 502 to 504 come from a proxy without a backend",
        )
    return _ADVICE.get(
        status, ("It does not accept the request as it is sent.", "compare with a request that works there")
    )


_KEY_MISSING = ("It asks for a key and none was sent.", "put the key into a variable: --api-key-env NAME")
_ADVICE = {
    401: _KEY_MISSING,
    403: _KEY_MISSING,
    404: (
        "The path does not exist there: another API, another prefix, or the model's name is unknown.",
        "check the URL, --api and --model; for OpenAI's APIs the endpoint ends before /v1",
    ),
    429: (
        "A rate limit or a full queue: even the first requests were turned away.",
        "raise the limit or wait until it resets, then use a smaller --concurrency",
    ),
}


def _not_streamed(url: str, text: str) -> PerfdoctorError:
    if "<" in text[:60]:
        return NotOpenai(
            f"{url} answers with a web page instead of a stream: {text}",
            "Another service, or a proxy's own page, listens there.",
            f"check the port, and that {_models(url)} answers with JSON",
        )
    return NotOpenai(
        f"{url} answers in one piece instead of a stream: {text}",
        "The server or a proxy ignores `stream: true`, so the time to the first token cannot be seen.",
        "switch streaming on there, or ask the server directly instead of through the proxy",
    )


def _dropped(url: str, text: str) -> PerfdoctorError:
    return NotOpenai(
        f"the server at {url} closes every connection in the middle of the answer: {text}",
        "It speaks TLS or another protocol there, or its worker crashes on the request.",
        "read the server's log, and try the endpoint with https:// if it may be a TLS port",
    )


def _empty(url: str, text: str) -> PerfdoctorError:
    return NotOpenai(
        f"{url} opens streams but sends no token and no finish_reason in any of them",
        "The process behind the HTTP server has failed, or a proxy swallows the body.",
        "send one request with curl -N, and read the server's log",
    )


def _cut_off(url: str, text: str) -> PerfdoctorError:
    return Refused(
        f"the server at {url} breaks off every answer: {text}",
        "Its worker dies or a proxy's time limit ends the stream; some servers drop one answer for the next.",
        "read the server's log; try one request at a time with --concurrency 1",
    )


def _in_band(url: str, text: str) -> PerfdoctorError:
    return Refused(
        f"the server at {url} reports an error inside every stream: {text}",
        "The request was accepted and then failed in the engine.",
        "read the server's log at the time of the run",
    )


def _unreadable(url: str, text: str) -> PerfdoctorError:
    return NotOpenai(
        f"{url} answers with something that is no OpenAI stream: {text}",
        "Another protocol or another service listens there.",
        f"check the port, the path and --api with: curl -v {_models(url)}",
    )


_OTHER: dict[str, Callable[[str, str], PerfdoctorError]] = {
    "connect": _unreachable,
    "timeout": _silent,
    "reset": _dropped,
    "not_streamed": _not_streamed,
    "empty": _empty,
    "truncated": _cut_off,
    "in_band_error": _in_band,
}
