"""From the text of a flag to a value. Each raises UsageError with an example for what is none."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

from perfdoctor.errors import UsageError

LONGEST_S = 365 * 86400.0
LARGEST_BODY = 16 * 2**20  # bytes
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2
UNSENDABLE = "It holds a line break or a character outside ASCII."
_RATE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:\s*(?:/|per)\s*(s|sec|min|m|h))?")
_PER_S = {None: 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}


def api(text: str) -> str:
    return _one_of(text, ("chat", "completions", "responses", "http"), "--api")


def arrival(text: str) -> str:
    return _one_of(text, ("constant", "poisson", "gamma"), "--arrival")


def transport(text: str) -> str:
    return _one_of(text, ("auto", "raw", "aiohttp", "httpx"), "--transport")


def _one_of(text: str, known: Any, flag: str) -> str:
    if text not in known:
        near = difflib.get_close_matches(text, known, 1)
        raise UsageError(
            f"{flag} {text} is unknown",
            f"It is one of: {', '.join(known)}.",
            f"write for example {flag} {near[0] if near else known[0]}",
        )
    return text


def seconds_or_zero(text: str) -> float:
    """The same where nothing at all is a length too."""
    found = _duration(text)
    return found if found == 0 else seconds(text)


def seconds(text: str) -> float:
    found = _duration(text)
    if not 0 < found < LONGEST_S:
        raise UsageError(
            f"{text} is no usable length of time",
            "It must be above zero and below a year.",
            "write 30s or 2m",
        )
    return found


def _duration(text: str) -> float:
    from perfdoctor.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        what, _, do = str(error).partition("; ")
        raise UsageError(what, "", do) from error


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
    if not all(sendable(value) for value in found.values()):
        raise UsageError("the value of a --header cannot be sent", UNSENDABLE, example)
    return found


def sendable(value: str) -> bool:
    """HTTP headers are ASCII on one line; others are sent by no two clients alike."""
    return value.isascii() and value.isprintable()


def rate(text: str) -> float:
    """Requests a second from `5/s`, `300/min` or a plain number."""
    match = _RATE.fullmatch(text.strip().lower())
    value = float(match.group(1)) / _PER_S[match.group(2)] if match else 0.0
    if not 0 < value < 1e6:
        raise UsageError(f"{text} is no rate", "It must be above zero.", "write 5/s or 300/min")
    return value


def rate_levels(text: str) -> tuple[float, ...]:
    """Ascending rates from `1,2/s,300/min`."""
    return tuple(sorted({rate(part) for part in text.split(",")}))


def whole_levels(text: str) -> tuple[float, ...]:
    """Ascending numbers of users from `1,2,4`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(
            f"-c {text} is no list of levels", "Each is a number of users, from 1.", "write -c 1,2,4,8"
        )
    return tuple(float(number) for number in sorted({int(part) for part in parts}))


def share(text: str) -> float:
    """0-1 from `10%` or `0.1`."""
    number = text.strip()
    try:
        value = float(number.rstrip("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"{text} is no share", "It lies between 0 and 100 %.", "write 10% or 0.1")
    return value


def ramp(text: str) -> tuple[tuple[float, float], ...]:
    """(second, rate) corners of `1/s:20/s:30s` (a straight line) or `1/s@10s,5/s@10s` (steps)."""
    example = UsageError(
        f"--ramp {text} is no ramp",
        "It is a line from one rate to another, or steps that each last a time.",
        "write 1/s:20/s:30s or 1/s@10s,5/s@10s",
    )
    if "@" not in text:
        parts = text.split(":")
        if len(parts) != 3:
            raise example
        return (0.0, rate(parts[0])), (seconds(parts[2]), rate(parts[1]))
    corners: list[tuple[float, float]] = []
    at_s = 0.0
    for step in text.split(","):
        level, at, length = step.partition("@")
        if not at:
            raise example
        corners += [(at_s, rate(level)), (at_s := at_s + seconds(length), rate(level))]
    return tuple(corners)


def body_fields(lines: list[str]) -> dict[str, Any]:
    """`NAME=JSON` lines; what is no JSON is a text."""
    import msgspec

    found: dict[str, Any] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                "a --body-field is no NAME=JSON", "", "write for example --body-field ignore_eos=true"
            )
        try:
            found[name.strip()] = msgspec.json.decode(value)
        except (msgspec.MsgspecError, RecursionError):
            found[name.strip()] = value
    return found


def body_file(path: str) -> str:
    file = readable(path, "--body-file")
    if file.stat().st_size > LARGEST_BODY:
        raise UsageError(
            f"--body-file {path} is larger than 16 MiB",
            "It is sent with every request.",
            "send a smaller one",
        )
    return path


def existing(flag: str) -> Any:
    """A reader of paths to files that must be there."""
    return lambda path: str(readable(path, flag))


def readable(path: str, flag: str) -> Path:
    file = Path(path)
    try:
        with file.open("rb"):
            return file
    except OSError as error:
        raise UsageError(f"{flag} {path} cannot be read: {error.strerror}", "", "check the path") from error


def socket_path(path: str) -> str:
    if not Path(path).is_socket():
        raise UsageError(
            f"--unix-socket {path} is no socket" if Path(path).exists() else f"there is no socket {path}",
            "The server makes it when it starts, and often removes it when it ends.",
            f"check with: ls -l {path}",
        )
    return path


def proxy(url: str) -> str:
    if "@" in url or not url.startswith(("http://", "https://")):
        raise UsageError(
            "the --proxy is no usable URL",
            "It is http://HOST:PORT; a user name or password would stay readable in the shell's history.",
            "write --proxy http://proxy.example:3128",
        )
    return url


def length(flag: str) -> Any:
    """A reader of a number of tokens, or of a distribution of it."""

    def read(text: str) -> int | str:
        from perfdoctor.loadgen.lengths import parse_lengths

        parse_lengths(text, flag)
        return int(text) if text.strip().isdecimal() else text.strip()

    return read
