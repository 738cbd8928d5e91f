"""Flags that several commands share, and the way from their texts to records."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from perfdoctor.errors import UsageError

if TYPE_CHECKING:
    from perfdoctor.model import Scenario
    from perfdoctor.stages import Orders

LONGEST_S = 365 * 86400.0
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2
_UNSENDABLE = "It holds a line break or a character outside ASCII."

Endpoint = Annotated[
    str | None, typer.Option(metavar="URL", help="An OpenAI-compatible server, with or without /v1.")
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="tiny|shape:NAME|FOLDER",
        help="Serve this model in a child process; with --endpoint: the served model's name.",
    ),
]
Api = Annotated[str, typer.Option(metavar="chat|completions", help="Which API to call.")]
KeyEnv = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Environment variable that holds the API key; never the key itself."),
]
Headers = Annotated[
    list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="Extra header; repeatable.")
]
Concurrency = Annotated[int, typer.Option("-c", "--concurrency", min=1, help="Requests open at a time.")]
Requests = Annotated[int | None, typer.Option("-n", "--requests", min=1, help="Stop after this many.")]
Duration = Annotated[str | None, typer.Option(metavar="30s", help="Stop after this long.")]
Warmup = Annotated[int, typer.Option(min=0, help="Requests sent first and left out of the numbers.")]
PromptTokens = Annotated[int, typer.Option(min=1, help="Length of the made-up prompts, about.")]
OutputTokens = Annotated[int, typer.Option(min=1, help="max_tokens of every request.")]
Timeout = Annotated[str, typer.Option(metavar="2m", help="Limit of one whole request.")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Run folder to write.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON contract and nothing else on stdout.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress and no notes on stderr.")]


def orders(command: str, scenario: Scenario, out: Path | None) -> Orders:
    from perfdoctor.redact import masked_arguments
    from perfdoctor.stages import Orders

    name = scenario.target.api_key_env
    secret = os.environ.get(name) if name else None
    if name and not secret:
        raise UsageError(
            f"the environment variable {name} is not set",
            "--api-key-env names the variable that holds the key.",
            f"export {name}=... and run again",
        )
    if secret and not _sendable(secret):
        raise UsageError(
            f"the key in {name} cannot be sent", _UNSENDABLE, f"set {name} again, without hidden characters"
        )
    return Orders(
        scenario=scenario,
        command=command,
        argv=masked_arguments(sys.argv[1:]),
        out=out,
        secret=secret,
        probes=command == "diagnose",
    )


def api(text: str) -> Literal["chat", "completions"]:
    known: dict[str, Literal["chat", "completions"]] = {"chat": "chat", "completions": "completions"}
    if text not in known:
        raise UsageError(f"--api {text} is unknown", "", f"use one of: {', '.join(known)}")
    return known[text]


def seconds(text: str) -> float:
    from perfdoctor.units import parse_duration

    try:
        found = parse_duration(text)
    except ValueError as error:
        what, _, do = str(error).partition("; ")
        raise UsageError(what, "", do) from error
    if not 0 < found < LONGEST_S:
        raise UsageError(
            f"{text} is no usable length of time",
            "It must be above zero and below a year.",
            "write 30s or 2m",
        )
    return found


def headers(lines: list[str] | None) -> dict[str, str]:
    pairs = [line.partition(":") for line in lines or []]
    found = {name.strip(): value.strip() for name, _, value in pairs}
    example = "write for example --header 'X-Tenant: blue'"
    if not all(colon for _, colon, _ in pairs) or not all(_HEADER_NAME.fullmatch(name) for name in found):
        raise UsageError(
            "a --header is no 'Name: value'",
            "A name has letters, digits and dashes before the colon.",
            example,
        )
    if not all(_sendable(value) for value in found.values()):
        raise UsageError("the value of a --header cannot be sent", _UNSENDABLE, example)
    return found


def _sendable(value: str) -> bool:
    """HTTP headers are ASCII on one line; others are sent by no two clients alike."""
    return value.isascii() and value.isprintable()


def found_server() -> str:
    from perfdoctor import console, preflight

    found, tried = preflight.find_local_server()
    if not found:
        raise UsageError(
            "no target given, and no server found on this machine",
            f"Tried {', '.join(tried)}.",
            "perfdoctor diagnose --endpoint URL, or without any server: perfdoctor diagnose --model tiny",
        )
    console.say(f"Found a server at {found}")
    return found
