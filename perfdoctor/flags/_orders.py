"""From flags and a scenario file to the orders of a run. Contradictions are usage errors, said before it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfdoctor.errors import UsageError
from perfdoctor.flags._flag import Flag, Given, lay_over
from perfdoctor.flags.values import UNSENDABLE, sendable

if TYPE_CHECKING:
    from perfdoctor.model import Load, Scenario, Target
    from perfdoctor.stages import Orders

OPEN_ONLY = ("arrival", "burstiness", "max_in_flight")
HTTP_ONLY = ("method", "body", "body_file")


def scenario_of(given: Given, groups: Sequence[Sequence[Flag]], default: Scenario) -> Scenario:
    """The default or the file, with the flags over it. Finds a server on this machine if none was named."""
    import msgspec

    from perfdoctor import scenario

    base = scenario.read_scenario(Path(given["scenario"])) if "scenario" in given else default
    found: Scenario = lay_over(base, given, groups)
    target, load = found.target, _shaped(found.load, given)
    _check(target, load, given)
    if not (target.endpoint or target.model):
        target = msgspec.structs.replace(target, endpoint=found_server())
    return msgspec.structs.replace(found, target=target, load=load)


def _shaped(load: Load, given: Given) -> Load:
    """The arrival process that the other flags imply, and the source that the file of prompts is."""
    import msgspec

    changes: dict[str, Any] = {}
    if load.replay:
        changes["arrival"] = "replay"
    elif (load.rate or load.ramp) and load.arrival == "closed":
        changes["arrival"] = "poisson"
    if "prompts" in given:
        from perfdoctor.loadgen.prompts._detect import detect

        source = detect(Path(given["prompts"]))
        changes["prompts"] = msgspec.structs.replace(load.prompts, source=source)
    return msgspec.structs.replace(load, **changes)


# (flags, whether they are out of place, why, what to do instead)
_Rule = tuple[tuple[str, ...], bool, str, str]


def _check(target: Target, load: Load, given: Given) -> None:
    for names, wrong, why, do in _contradictions(target, load, given):
        found = next((name for name in names if name in given), None)
        if wrong and found:
            raise UsageError(f"--{found.replace('_', '-')} does not go with the rest", why, do)
    if target.api == "http" and not target.endpoint:
        raise UsageError("--api http needs a URL", "Any server can be meant.", "add --endpoint URL")


def _contradictions(target: Target, load: Load, given: Given) -> tuple[_Rule, ...]:
    opens, arrival = load.arrival != "closed", load.arrival
    return (
        (
            OPEN_ONLY,
            not opens,
            "It belongs to an open loop: requests that arrive at a rate.",
            "add --rate 5/s",
        ),
        (
            ("concurrency",),
            opens,
            "It is the number of users of a closed loop.",
            "use --max-in-flight instead",
        ),
        (("ramp_up",), opens, "It starts the users of a closed loop.", "use --ramp for a rate that changes"),
        (("burstiness",), arrival != "gamma", f"Arrivals are {arrival}.", "add --arrival gamma"),
        (("burstiness",), load.burstiness <= 0, "It is above zero; 1 is poisson.", "write --burstiness 0.5"),
        (("rate", "ramp"), bool(load.replay), "A replay has its own instants.", "use --replay-speed"),
        (("rate",), bool(load.ramp), "A ramp says the rate at every instant.", "leave --rate or --ramp out"),
        (("replay_speed",), not load.replay, "It is the speed of a replay.", "add --replay FILE"),
        (("replay_speed",), load.replay_speed <= 0, "It is a factor above zero.", "write --replay-speed 2"),
        (("turns",), bool(load.prompts.file), "A file has its own conversations.", "leave --turns out"),
        (HTTP_ONLY, target.api != "http", "OpenAI's APIs fix method and body.", "add --api http"),
        (("body",), "body_file" in given, "There is one body.", "leave --body or --body-file out"),
    )


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
            "perfdoctor diagnose --endpoint URL, or without any server: perfdoctor diagnose --model tiny",
        )
    console.say(f"Found a server at {found}")
    return found
