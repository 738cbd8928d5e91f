"""Flags that say what is measured and how it is reached."""

from __future__ import annotations

from perfdoctor.flags import values
from perfdoctor.flags._flag import Flag, group

ENDPOINT = Flag(
    "endpoint",
    "target.endpoint",
    "An OpenAI-compatible server, with or without /v1; with --api http any URL.",
    "URL",
)

TARGET = group(
    "Target",
    ENDPOINT,
    Flag(
        "model",
        "target.model",
        "Serve this model in a child process; with --endpoint: the served model's name.",
        "tiny|shape:NAME|FOLDER",
    ),
    Flag(
        "api",
        "target.api",
        "Which API to call; chat unless told otherwise.",
        "chat|completions|responses|http",
        read=values.api,
    ),
    Flag(
        "stream",
        "target.stream",
        "Ask for a stream (the default); without, there is no first token to time.",
        kind=bool,
        long="--stream/--no-stream",
    ),
    Flag(
        "api_key_env",
        "target.api_key_env",
        "Environment variable that holds the API key; never the key itself.",
        "NAME",
    ),
    Flag(
        "header",
        "target.headers",
        "Extra header; repeatable.",
        "'NAME: VALUE'",
        kind=list[str],
        read=values.headers,
    ),
    Flag(
        "body_field",
        "target.extra_body",
        "Member laid over every request's body; null takes one out; repeatable.",
        "NAME=JSON",
        kind=list[str],
        read=values.body_fields,
    ),
    Flag("method", "target.method", "With --api http: GET, or POST where there is a body.", "METHOD"),
    Flag("body", "target.body", "With --api http: the body, with {{variables}}.", "TEXT"),
    Flag(
        "body_file", "target.body_file", "The same from a file, of any bytes.", "FILE", read=values.body_file
    ),
)

ADDRESS = tuple(flag for flag in TARGET if flag.name in ("endpoint", "api_key_env", "header"))

WIRE = group(
    "Connection",
    Flag(
        "transport",
        "target.wire.transport",
        "HTTP client; chosen by itself.",
        "raw|aiohttp|httpx",
        read=values.transport,
    ),
    Flag(
        "http2",
        "target.wire.http2",
        "Speak HTTP/2, over httpx: for low rates only.",
        kind=bool,
        long="--http2",
    ),
    Flag(
        "insecure",
        "target.wire.insecure",
        "Do not verify the server's certificate.",
        kind=bool,
        long="--insecure",
    ),
    Flag(
        "ca_file",
        "target.wire.ca_file",
        "Authorities to trust instead of the platform's.",
        "PEM",
        read=values.existing("--ca-file"),
    ),
    Flag(
        "client_cert",
        "target.wire.client_cert",
        "Certificate to show to the server.",
        "PEM",
        read=values.existing("--client-cert"),
    ),
    Flag(
        "client_key",
        "target.wire.client_key",
        "Its key, where it is in a file of its own.",
        "PEM",
        read=values.existing("--client-key"),
    ),
    Flag(
        "proxy",
        "target.wire.proxy",
        "HTTP proxy; those of the environment are ignored.",
        "URL",
        read=values.proxy,
    ),
    Flag(
        "unix_socket",
        "target.wire.unix_socket",
        "Connect there; the endpoint's host then only names it.",
        "PATH",
        read=values.socket_path,
    ),
)
