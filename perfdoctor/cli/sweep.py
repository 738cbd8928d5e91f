"""`perfdoctor sweep`"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from perfdoctor import flags
from perfdoctor.cli._app import Grouped, app
from perfdoctor.cli._common import AsJson, Out, Quiet
from perfdoctor.errors import UsageError
from perfdoctor.flags import Flag, Given, values

if TYPE_CHECKING:
    from perfdoctor.model import Scenario
    from perfdoctor.sweep import Plan

MOST = 256
LEVELS = flags.group(
    "Levels",
    Flag(
        "concurrency",
        "load.concurrency",
        "Users at each level; unless given, doubling from 1 until more brings hardly more.",
        "1,2,4,8",
        short="-c",
        read=lambda text: values.whole_levels(text)[0],
    ),
    Flag(
        "rate",
        "load.rate",
        "Requests a second at each level, instead of users.",
        "1,2,5",
        read=lambda text: values.rate_levels(text)[0],
    ),
    Flag("max_concurrency", None, f"Where doubling ends ({MOST}).", kind=int, least=1),
    Flag(
        "max_rate",
        "load.rate",
        "The same for a rate, which is doubled from a 64th of it.",
        "64/s",
        read=values.rate,
    ),
)
OWN = ("concurrency", "rate", "ramp", "replay", "replay_speed")
SLO = replace(flags.SLO, help="What must hold; finds the highest load at which it does. Exit 1 if none.")
EACH = {"requests": "Requests of each level.", "duration": "Length of each level (10s)."}
LOAD = tuple(
    replace(flag, help=EACH.get(flag.name, flag.help)) for flag in flags.LOAD if flag.name not in OWN
)
SHAPE = tuple(flag for flag in flags.SHAPE if flag.name not in OWN)
GROUPS = (
    (*flags.TARGET, flags.SCENARIO), LEVELS, LOAD, SHAPE, flags.PROMPTS, flags.LIMITS, flags.WIRE, (SLO,),
)  # fmt: skip


@app.command(cls=Grouped, short_help="Find the knee, and the highest load within an SLO.")
@flags.takes(*GROUPS)
def sweep(
    given: Given,
    out: Out = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """One load test per level, with the server at rest between them: where more load stops paying.

    Examples:

      perfdoctor sweep --endpoint http://127.0.0.1:8000

      perfdoctor sweep --endpoint http://127.0.0.1:8000 -c 1,2,4,8 --duration 20s

      perfdoctor sweep --endpoint http://127.0.0.1:8000 --slo 'ttft_p95<500ms,tpot_p95<50ms'

      perfdoctor sweep --endpoint http://127.0.0.1:8000 --rate 1,2,5 --json

      perfdoctor sweep --endpoint http://127.0.0.1:8000 --max-rate 64/s --slo 'ttft_p95<500ms'
    """
    from perfdoctor import sweep_commands
    from perfdoctor.model import Load, Scenario

    scenario = flags.scenario_of(given, GROUPS, Scenario(load=Load(concurrency=1, warmup_requests=1)))
    warms_up = not {"warmup", "warmup_time", "scenario"} & set(given)
    found = sweep_commands.run(
        flags.orders("sweep", scenario, out), _plan(scenario, given), warms_up=warms_up, quiet=quiet
    )
    sweep_commands.show(found, as_json=json)
    code = sweep_commands.exit_code(found)
    if code:
        raise typer.Exit(code)


def _plan(scenario: Scenario, given: Given) -> Plan:
    from perfdoctor.sweep import Plan

    load = scenario.load
    if load.ramp or load.replay or load.arrival == "none":
        raise UsageError(
            "a sweep has levels, and this scenario no steady load",
            "A ramp, a replay and watching have none.",
            "take them out of a copy; or perfdoctor load-test --scenario FILE",
        )
    rates = values.rate_levels(given["rate"]) if "rate" in given else None
    users = values.whole_levels(given["concurrency"]) if "concurrency" in given else None
    if load.arrival != "closed" and rates is None and "max_rate" not in given:
        raise UsageError(
            "a sweep over a rate needs its levels", "", "add --rate 1,2,5 or where it ends, --max-rate 64/s"
        )
    ends = [f"--{name.replace('_', '-')}" for name in ("max_concurrency", "max_rate") if name in given]
    if ends and (rates or users):
        raise UsageError(
            f"{ends[0]} does not go with levels of your own",
            "It is where doubling ends.",
            "leave one of the two out",
        )
    if len(ends) > 1:
        raise UsageError(
            "--max-concurrency does not go with --max-rate",
            "A sweep is over users or over a rate.",
            "leave one of the two out",
        )
    return Plan(
        over="rate" if load.arrival != "closed" else "concurrency",
        levels=rates or users,
        most=load.rate if load.rate and not rates else given.get("max_concurrency", MOST),
        has_slo=load.slo is not None,
        counted=load.requests is not None,
    )
