"""Orders that contradict themselves are usage errors, said before anything is done. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from perfdoctor.errors import UsageError
from perfdoctor.flags._flag import Flag, Given, value_at
from perfdoctor.flags.values import LONGEST_S

if TYPE_CHECKING:
    from perfdoctor.model import Scenario

WIRE = (
    "transport", "http2", "insecure", "ca_file", "client_cert", "client_key", "proxy", "unix_socket",
)  # fmt: skip
OF_OPENAI = ("stream", "body_field", "temperature", "count_per_chunk", "model")
DRIVES = (
    "concurrency", "requests", "rate", "arrival", "ramp", "ramp_up", "replay", "max_in_flight", "prompts",
    "turns", "prompt_tokens", "output_tokens", "warmup", "warmup_time", "slo",
)  # fmt: skip
MADE_UP = ("prompt_tokens", "shared_prefix", "turns")
SHORT = {"concurrency": "-c"}
SHARE = "load.max_error_rate"
MAY_BE_ZERO = ("load.ramp_up_s", "load.warmup_s", "load.drain_s", "load.temperature", SHARE)

# Flags, the first given of which is named; whether they are out of place; beside what; why; the way out.
Rule = tuple[tuple[str, ...], object, str, str, str]


def check_together(scenario: Scenario, given: Given) -> None:
    """UsageError for a flag that means nothing beside the other orders."""
    rules = (*_of_watching(scenario, given), *_of_load(scenario, given), *_of_target(scenario, given))
    for names, wrong, beside, why, do in rules:
        found = next((name for name in names if name in given), None)
        if wrong and found:
            name = SHORT.get(found) or "--" + found.replace("_", "-")
            raise UsageError(f"{name} does not go with {beside}", why, do)
    target = scenario.target
    if target.api == "http" and not target.endpoint:
        raise UsageError("--api http needs a URL", "No server is looked for then.", "add --endpoint URL")
    if scenario.load.arrival == "replay" and not scenario.load.replay:
        raise UsageError("a replay needs a trace", "", "add --replay FILE")
    if target.wire.client_key and not target.wire.client_cert:
        raise UsageError(
            "--client-key is given without a certificate", "", "add --client-cert PEM, or leave it out"
        )


def _of_load(scenario: Scenario, given: Given) -> Iterator[Rule]:
    load, arrival = scenario.load, scenario.load.arrival
    closed, users = arrival == "closed", "a closed loop of users"
    yield (
        DRIVES, arrival == "none", "--no-load", "Nothing is sent then.", "leave one of the two out"
    )  # fmt: skip
    shape = "--replay" if load.replay else "--ramp" if load.ramp else "--rate"
    yield (
        ("concurrency",), not closed, shape,
        "It is the number of users of a closed loop; here requests arrive whether or not others are open.",
        "to limit how many are open at once, use --max-in-flight",
    )  # fmt: skip
    yield (
        ("arrival",), not (load.rate or load.ramp or load.replay), "a load without a rate",
        "It says how requests arrive at that rate.", "add --rate 5/s",
    )  # fmt: skip
    yield (
        ("arrival", "burstiness", "max_in_flight"), closed, users,
        "It belongs to an open loop, in which requests arrive at a rate.", "add --rate 5/s",
    )  # fmt: skip
    yield (
        ("ramp_up",), not closed, shape, "It spreads the start of a closed loop's users.",
        "for a rate that rises: --ramp 1/s:20/s:30s",
    )  # fmt: skip
    yield (
        ("burstiness",), arrival != "gamma", f"arrivals that are {arrival}",
        "It is the shape of gamma arrivals.", "add --arrival gamma",
    )  # fmt: skip
    yield (
        ("rate", "ramp", "arrival"), load.replay, "--replay", "A trace has its own instants.",
        "to send it faster, use --replay-speed",
    )  # fmt: skip
    yield (
        ("rate",), load.ramp, "--ramp", "A ramp says the rate at every instant.",
        "leave one of the two out",
    )  # fmt: skip
    yield (
        ("replay_speed",), not load.replay, "a load that is no replay", "It is the speed of a trace.",
        "add --replay FILE",
    )  # fmt: skip
    yield (
        MADE_UP, load.prompts.file, "--prompts", "A file has its own prompts and conversations.",
        "leave it out, or leave --prompts out",
    )  # fmt: skip
    yield (
        ("count_per_chunk",), not scenario.target.stream, "--no-stream",
        "An answer in one piece has no chunks.", "leave one of the two out",
    )  # fmt: skip


def _of_watching(scenario: Scenario, given: Given) -> Iterator[Rule]:
    """--no-load beside anything that would send something."""
    yield (
        (
            "concurrency", "requests", "rate", "ramp", "replay", "warmup", "warmup_time", "max_in_flight",
            "ramp_up", "workers", "slo", "prompts", "prompt_tokens", "output_tokens", "max_error_rate",
        ),
        "no_load" in given, "--no-load", "Nothing is sent: the traffic that is there is watched.",
        "leave one of the two out",
    )  # fmt: skip
    yield (
        ("no_load",), not scenario.target.endpoint and scenario.target.model, "a local model",
        "Nobody else asks it for anything.", "name a server: --endpoint URL",
    )  # fmt: skip


def _of_target(scenario: Scenario, given: Given) -> Iterator[Rule]:
    target = scenario.target
    yield (
        ("method", "body", "body_file"), target.api != "http", f"--api {target.api}",
        "OpenAI's APIs fix method and body.", "add --api http; or add members with --body-field",
    )  # fmt: skip
    yield (
        OF_OPENAI, target.api == "http", "--api http", "It belongs to OpenAI's APIs.",
        "leave it out; here URL, method, headers and body are all that is sent",
    )  # fmt: skip
    yield (
        ("body", "body_file"), target.body is not None and target.body_file, "another body",
        "A request has one.", "leave one of the two out",
    )  # fmt: skip
    yield (
        WIRE, not target.endpoint and target.model, "a local model",
        "It is served by a child process, over plain loopback.", "leave it out",
    )  # fmt: skip
    yield (
        ("api_key_env", "header"), not target.endpoint and target.model, "a local model",
        "Nobody asks for it there.", "leave it out",
    )  # fmt: skip
    yield (
        ("unix_socket",), target.wire.proxy, "--proxy", "A proxy leads to another host.",
        "leave one of the two out",
    )  # fmt: skip
    yield (
        ("ca_file",), target.wire.insecure, "--insecure", "Without a check nobody looks at it.",
        "leave one of the two out",
    )  # fmt: skip


def check_values(record: Any, flags: Sequence[Flag], named: Callable[[Flag], str]) -> None:
    """UsageError for a number that is out of its range; `named` says what a flag's place is called there."""
    for flag in (flag for flag in flags if flag.to):
        value = value_at(record, (flag.to or "").split("."))
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        low = flag.least or 0
        high = 1.0 if flag.to == SHARE else LONGEST_S if (flag.to or "").endswith("_s") else math.inf
        zero = isinstance(value, int) or flag.to in MAY_BE_ZERO
        if not low <= value <= high or value == math.inf or (value == 0 and not zero):
            allowed = f"from {low} to {high:.0f}" if high < math.inf else f"{low} or more"
            raise UsageError(
                f"{named(flag)} cannot be {value}", "", f"give it {allowed if zero else 'more than 0'}"
            )
