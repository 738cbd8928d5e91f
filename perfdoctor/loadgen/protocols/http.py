"""Any HTTP: one method and one body, with variables in body, URL and headers (see _template.py).

An answer is timed from send to first byte and to its last. One of type text/event-stream is timed event by
event as well; its events are not taken for tokens, and it may end without saying so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols._protocol import Ask, Protocol, is_frame
from perfdoctor.loadgen.protocols._template import Template, Values, parse_template
from perfdoctor.loadgen.transports._transport import Request
from perfdoctor.loadgen.urls import cut
from perfdoctor.model import Target


def _bind(target: Target, seed: int, columns: Collection[str]) -> Protocol:
    if target.extra_body:
        raise UsageError(
            "--body-field does not go with --api http",
            "It adds members to the bodies of OpenAI's APIs; here the whole body is yours.",
            "put the member into --body or --body-file",
        )
    path = _path_template(target.endpoint or "", columns)
    text = _body(target)
    body = None if text is None else parse_template(text, columns, "the body")
    headers = {
        name: parse_template(value, columns, f"the header {name}")
        for name, value in target.headers.items()
        if "{{" in value
    }

    def request(ask: Ask, _: str) -> Request:
        values = Values(ask, seed)
        filled = None if body is None else body.fill(values).encode("utf-8", "surrogateescape")
        varying = {name: template.fill(values, _on_one_line) for name, template in headers.items()}
        return Request(method, path.fill(values, _quote), varying, filled)

    method = _method(target.method, text)
    return replace(
        PROTOCOL,
        request=request,
        content_type=_content_type(text),
        fills_headers=tuple(headers),
        fixed=not headers and not path.holes and (body is None or not body.holes),
    )


def _body(target: Target) -> str | None:
    """The template of the body. Bytes that are no UTF-8 are carried through it as they are."""
    if target.body_file is None:
        return target.body
    try:
        return Path(target.body_file).read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(
            f"the body {target.body_file} cannot be read: {error.strerror}", "", "check the path"
        ) from error


def _method(asked: str | None, body: str | None) -> str:
    method = (asked or ("GET" if body is None else "POST")).upper()
    if not (method.isascii() and method.isalpha()):
        raise UsageError(f"--method {method} is no HTTP method", "", "use GET, POST, PUT, PATCH or DELETE")
    return method


def _path_template(url: str, columns: Collection[str]) -> Template:
    origin, path = cut(url)
    if "{{" in origin:
        raise UsageError(
            "the URL has a variable before its path",
            "All requests of a load go to one server.",
            "put variables into the path or the query",
        )
    return parse_template(path, columns, "the URL")


def _quote(value: str) -> str:
    return quote(value, safe="")


def _on_one_line(value: str) -> str:
    """A line break would end the header, and begin what the row's author likes."""
    return " ".join(value.split())


def _content_type(body: str | None) -> str | None:
    if body is None:
        return None
    if any("\udc80" <= character <= "\udcff" for character in body):
        return "application/octet-stream"
    return "application/json" if body.lstrip()[:1] in ("{", "[") else "text/plain; charset=utf-8"


def _read(event: bytes, at_ns: int, answer: Answer) -> None:
    if not is_frame(event, answer):
        return
    if answer.first_event_ns is None:
        answer.first_event_ns = at_ns
    answer.token_ns.append(at_ns)
    if answer.first_answer_ns is None:
        answer.begin(False, at_ns)


def _read_whole(status: int, headers: Mapping[str, str], body: bytes, at_ns: int, answer: Answer) -> None:
    answer.done = True


def _unbound(ask: Ask, path: str) -> Request:
    raise AssertionError("bound to a target before its first request")


PROTOCOL = Protocol(
    path="",
    request=_unbound,
    read=_read,
    read_whole=_read_whole,
    accept="*/*",
    absolute=True,
    tokens=False,
    keep_body=False,
    bind=_bind,
)
