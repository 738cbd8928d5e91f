"""`perfdoctor diagnose`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from perfdoctor import flags
from perfdoctor.cli._app import CROSSED, Grouped, app, exit_for_state
from perfdoctor.cli._common import AsJson, Out, Quiet
from perfdoctor.errors import CannotJudge, UsageError
from perfdoctor.flags import Flag, Given, values

if TYPE_CHECKING:
    from perfdoctor.stages import Orders

STEADY_S = 15.0  # how long load is driven unless told otherwise
WATCH_S = 20.0  # the same for the traffic that is there

NO_EXPERIMENTS = Flag(
    "no_experiments",
    "load.experiments",
    "Leave out the dozen requests after the load in which one thing is changed.",
    kind=bool,
    read=lambda off: not off,
    long="--no-experiments",
    group="Load",
)
LOG = Flag(
    "log",
    "target.log",
    "The server's log file: read while the run goes on, where /metrics is closed.",
    "FILE",
    read=values.existing("--log"),
    group="Target",
)
NO_LOAD = Flag(
    "no_load",
    "load.arrival",
    "Send nothing: watch the traffic that is there, for --duration (20s).",
    kind=bool,
    read=lambda on: "none" if on else "closed",
    long="--no-load",
    group="Load",
)
LOCAL = flags.group(
    "Local model",
    Flag("device", None, "Of the local model.", "cpu|cuda"),
    Flag("dtype", None, "Of the local model.", "bfloat16"),
    Flag("threads", None, "CPU threads of the local model.", kind=int, least=1),
)
GROUPS = (
    (*flags.TARGET, LOG, flags.SCENARIO), LOCAL, (*flags.LOAD, NO_LOAD, NO_EXPERIMENTS), flags.SHAPE,
    flags.PROMPTS, flags.LIMITS, flags.WIRE, (flags.SLO,),
)  # fmt: skip


@app.command(cls=Grouped, short_help="Find where the time goes, and what makes it faster.")
@flags.takes(*GROUPS)
def diagnose(
    given: Given,
    run: Annotated[str | None, typer.Argument(help="Judge this run folder again, or `latest`.")] = None,
    out: Out = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find where the time goes: drive load, sample the machine, name the bottleneck and its fix.

    Examples:

      perfdoctor diagnose --model tiny

      perfdoctor diagnose --endpoint http://127.0.0.1:8000 -c 8

      perfdoctor diagnose --endpoint http://127.0.0.1:8000 --no-load --duration 1m

      perfdoctor diagnose latest
    """
    from perfdoctor import commands

    if run is not None:
        if "://" in run and "@" not in run:
            raise UsageError(f"{run} is no run folder", "", f"perfdoctor diagnose --endpoint {run}")
        if given:
            raise UsageError("give a run folder or a target, not both", "", "see perfdoctor diagnose --help")
        bundle = commands.judge(run)
    else:
        bundle = commands.run_and_judge(_orders(given, out), quiet)
    commands.show(bundle, as_json=json)
    if bundle.diagnosis and run is None:
        exit_for_state(bundle.diagnosis.state)
    if bundle.diagnosis and bundle.diagnosis.verdict.status in ("untrusted", "insufficient_evidence"):
        raise typer.Exit(CannotJudge.exit_code)
    if run is None and bundle.summary and commands.crossed(bundle.summary):
        raise typer.Exit(CROSSED)


def _orders(given: Given, out: Out) -> Orders:
    import msgspec

    from perfdoctor.model import Load, Scenario

    default = Scenario(load=Load(concurrency=4, baseline_requests=5, experiments=True))
    scenario = flags.scenario_of(given, GROUPS, default)
    options = {name: str(given[name]) for name in ("device", "dtype", "threads") if name in given}
    target = msgspec.structs.replace(scenario.target, options={**scenario.target.options, **options})
    load = scenario.load
    if not (load.duration_s or load.requests or load.ramp or load.replay):
        load = msgspec.structs.replace(load, duration_s=WATCH_S if load.arrival == "none" else STEADY_S)
    return flags.orders("diagnose", msgspec.structs.replace(scenario, target=target, load=load), out)
