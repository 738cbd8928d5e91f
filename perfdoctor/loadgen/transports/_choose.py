"""Which transport carries a run, and why."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.transports._transport import Transport
from perfdoctor.model import Load, Wire
from perfdoctor.registry import load_member


def choose(wire: Wire) -> tuple[str, str]:
    """(name, reason). UsageError for a transport that cannot do what was asked."""
    asked = wire.transport
    if wire.http2:
        return _agreed(asked, "httpx", "HTTP/2 was asked for")
    if wire.proxy:
        return _agreed(asked, "aiohttp", "a proxy was asked for")
    if asked != "auto":
        return asked, "asked for"
    if sys.platform == "win32":
        return "aiohttp", "this system has no event loop for the other one"
    return "raw", "the cheapest and most exact"


def _agreed(asked: str, needed: str, reason: str) -> tuple[str, str]:
    if asked not in ("auto", needed):
        raise UsageError(
            f"the transport {asked} cannot do that: {reason}", "", f"leave --transport out, or use {needed}"
        )
    return needed, reason


def make_transport(origin: str, headers: Mapping[str, str], wire: Wire, load: Load) -> Transport:
    name, _ = choose(wire)
    make = load_member("perfdoctor.loadgen.transports", name, "TRANSPORT")[0]
    made: Transport = make(origin, headers, wire, load)
    return made
