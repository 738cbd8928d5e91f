"""From flags and a scenario file to the orders of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfdoctor.errors import UsageError
from perfdoctor.flags._check import check_together, check_values
from perfdoctor.flags._flag import Flag, Given, lay_over
from perfdoctor.flags.values import UNSENDABLE, headers, proxy, sendable

if TYPE_CHECKING:
    from perfdoctor.model import Load, Scenario
    from perfdoctor.stages import Orders


def scenario_of(given: Given, groups: Sequence[Sequence[Flag]], default: Scenario) -> Scenario:
    """The default or the file, with the flags over it. Finds a server on this machine if none was named."""
    import msgspec

    from perfdoctor import limits
    from perfdoctor.loadgen.transports._choose import choose
    from perfdoctor.loadgen.transports._tls import make_context

    flags = [flag for group in groups for flag in group]
    base = _from_file(Path(given["scenario"]), given, flags) if "scenario" in given else default
    laid: Scenario = lay_over(base, given, groups)
    found = msgspec.structs.replace(laid, load=_shaped(laid.load, given))
    check_values(found, [flag for flag in flags if flag.name in given], Flag.spelled)
    check_together(found, given)
    choose(found.target.wire)
    if found.target.wire.ca_file or found.target.wire.client_cert:
        make_context(found.target.wire)  # unusable ones are said before anything is done
    if found.load.slo:
        limits.parse(found.load.slo)
    if found.target.endpoint or found.target.model:
        return found
    target = msgspec.structs.replace(found.target, endpoint=found_server())
    return msgspec.structs.replace(found, target=target)


def _from_file(path: Path, given: Given, flags: Sequence[Flag]) -> Scenario:
    """What flags replace as a whole is left out: a local model by an endpoint, a body by another."""
    import msgspec

    from perfdoctor import scenario_file

    found = scenario_file.read_scenario(path)
    text = path.read_text("utf-8")
    check_values(found, flags, lambda flag: f"{_place(path, text, flag)}: `{flag.to}`")
    if found.fault.get("use"):
        raise UsageError(
            f"{path} causes a fault of its own",
            "Only `perfdoctor scenario run` does that; here it would be measured without its fault.",
            f"perfdoctor scenario run {found.name}; or take [fault] out of a copy",
        )
    target = found.target
    if target.wire.proxy:
        proxy(target.wire.proxy)
    headers([f"{name}: {value}" for name, value in target.headers.items()])
    if "endpoint" in given and not target.endpoint:
        target = msgspec.structs.replace(target, model=None)
    if {"body", "body_file"} & set(given):
        target = msgspec.structs.replace(target, body=None, body_file=None)
    return msgspec.structs.replace(found, target=target)


def _place(path: Path, text: str, flag: Flag) -> str:
    from perfdoctor import scenario_file

    return scenario_file.place(path, text, tuple((flag.to or "").split(".")))


def _shaped(load: Load, given: Given) -> Load:
    """The arrival process that the other flags imply, and the source that the file of prompts is."""
    import msgspec

    changes: dict[str, Any] = {}
    if load.replay:
        changes["arrival"] = "replay"
    elif (load.rate or load.ramp) and load.arrival == "closed":
        changes["arrival"] = "poisson"
    if load.prompts.file and ("prompts" in given or load.prompts.source == "synthetic"):
        from perfdoctor.loadgen.prompts._detect import detect

        source = detect(Path(load.prompts.file))
        changes["prompts"] = msgspec.structs.replace(load.prompts, source=source)
    return msgspec.structs.replace(load, **changes)


def orders(command: str, scenario: Scenario, out: Path | None) -> Orders:
    from perfdoctor.redact import masked_arguments
    from perfdoctor.stages import Orders

    return Orders(
        scenario=scenario,
        command=command,
        argv=masked_arguments(sys.argv[1:]),
        out=out,
        secret=secret_of(scenario.target.api_key_env),
        probes=command == "diagnose",
    )


def secret_of(name: str | None) -> str | None:
    """The value of the variable that holds the key."""
    secret = os.environ.get(name) if name else None
    if name and not secret:
        raise UsageError(
            f"the environment variable {name} is not set",
            "--api-key-env names the variable that holds the key.",
            f"export {name}=... and run again",
        )
    if secret and not sendable(secret):
        raise UsageError(
            f"the key in {name} cannot be sent", UNSENDABLE, f"set {name} again, without hidden characters"
        )
    return secret


def found_server() -> str:
    from perfdoctor import console, preflight

    found, tried = preflight.find_local_server()
    if not found:
        raise UsageError(
            "no target given, and no server found on this machine",
            f"Tried {', '.join(tried)}.",
            "add --endpoint URL; or, without any server: --model tiny",
        )
    console.say(f"Found a server at {found}")
    return found
