"""`perfdoctor load-test`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from perfdoctor import flags
from perfdoctor.cli._app import CROSSED, Grouped, app, exit_for_state
from perfdoctor.cli._common import AsJson, Definitions, FailOn, Out, Quiet, Style
from perfdoctor.errors import CannotJudge
from perfdoctor.flags import Given

if TYPE_CHECKING:
    from perfdoctor.stages import Orders

# Where nothing says how long: requests for each user of a closed loop, seconds of an open one.
PER_USER = 10
OPEN_S = 10.0

GROUPS = (
    (*flags.TARGET, flags.SCENARIO), flags.LOAD, flags.SHAPE, flags.PROMPTS, flags.LIMITS, flags.WIRE,
    (flags.SLO,),
)  # fmt: skip


@app.command(name="load-test", cls=Grouped)
@flags.takes(*GROUPS)
def load_test(
    given: Given,
    fail_on: FailOn = None,
    metric_style: Style = None,
    definitions: Definitions = False,
    out: Out = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Drive a server and measure what its users see.

    Unless told how long: ten requests for each user, or ten seconds of arrivals.

    Examples:

      perfdoctor load-test --endpoint http://127.0.0.1:8000 -c 20 -n 200

      perfdoctor load-test --endpoint http://127.0.0.1:8000 --rate 5/s --duration 1m --json

      perfdoctor load-test --endpoint http://127.0.0.1:8000 -c 8 --slo 'ttft_p95<500ms,tpot_p95<50ms'

      perfdoctor load-test --api http --endpoint 'http://127.0.0.1:8080/search?q={{id}}' -c 4

      perfdoctor load-test --scenario nightly.toml --json
    """
    from perfdoctor import commands

    if fail_on:
        commands.check_limits(fail_on)
    orders = _orders(given, out)
    summary = commands.load_test(orders, quiet, metric_style)
    commands.show_summary(summary, as_json=json, definitions=definitions)
    exit_for_state(summary.state)
    if summary.trust.status == "invalid":
        raise typer.Exit(CannotJudge.exit_code)
    if commands.crossed(summary, fail_on):
        raise typer.Exit(CROSSED)


def _orders(given: Given, out: Out) -> Orders:
    import msgspec

    from perfdoctor.model import Load, Scenario

    scenario = flags.scenario_of(given, GROUPS, Scenario(load=Load(concurrency=1, warmup_requests=1)))
    load = scenario.load
    if not (load.requests or load.duration_s or load.ramp or load.replay or load.prompts.file):
        closed = load.arrival == "closed"
        limit = {"requests": PER_USER * load.concurrency} if closed else {"duration_s": OPEN_S}
        load = msgspec.structs.replace(load, **limit)
    return flags.orders("load-test", msgspec.structs.replace(scenario, load=load), out)
