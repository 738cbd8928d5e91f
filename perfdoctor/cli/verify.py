"""`perfdoctor verify`"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfdoctor import flags
from perfdoctor.cli._app import Grouped, app
from perfdoctor.cli._common import AsJson, Out, Quiet
from perfdoctor.cli.diagnose import LOCAL
from perfdoctor.errors import UsageError
from perfdoctor.flags import Flag, Given, values

if TYPE_CHECKING:
    from perfdoctor.model import Scenario
    from perfdoctor.verify import Plan

LEAST_PAIRS, PAIRS = 5, 6
SIDES = flags.group(
    "Sides: a model with and without the fix, or two servers of your own",
    Flag("model", "target.model", "Serve this model, with the fix and without.", "tiny|shape:NAME|FOLDER"),
    Flag("before", None, "Start this server; {port} stands for a free port.", "'CMD'"),
    Flag("after", None, "The same with the fix.", "'CMD'"),
    Flag("endpoint_before", None, "A server that is up already.", "URL"),
    Flag("endpoint_after", None, "The same with the fix.", "URL"),
    Flag("port", None, "Where the commands listen, if they do not say it.", kind=int, least=1),
    Flag("ready_timeout", None, "How long a server may take to start (10m).", "10m", read=values.seconds),
)
RUNS = flags.group(
    "Runs",
    Flag("pairs", None, f"Pairs of runs ({PAIRS}).", kind=int, least=LEAST_PAIRS),
    Flag("concurrency", "load.concurrency", "Users; by what the fix is for.", kind=int, short="-c", least=1),
    Flag("duration", "load.duration_s", "Length of a run (3s).", "3s", read=values.seconds),
    Flag("requests", "load.requests", "Requests of a run, instead.", kind=int, short="-n", least=1),
    Flag("seed", "load.seed", "Of the prompts, and of which side begins.", kind=int, least=0),
)
_WANTED = ("api_key_env", "header", "body_field")
TARGET = tuple(flag for flag in flags.TARGET if flag.name in _WANTED)
LIMITS = tuple(flag for flag in flags.LIMITS if flag.name == "timeout")
GROUPS = (SIDES, LOCAL, RUNS, flags.PROMPTS, TARGET, LIMITS)
Fix = Annotated[
    str | None,
    typer.Argument(help="A fix of `perfdoctor explain`, or settings as cache=static; of servers any name."),
]


@app.command(cls=Grouped, short_help="Try a fix: with and without, in turn, and say what it does here.")
@flags.takes(*GROUPS)
def verify(
    given: Given,
    fix: Fix = None,
    every: Annotated[bool, typer.Option("--all", help="The whole catalogue, into one table.")] = False,
    out: Out = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Try a fix: with it and without, in turn, and say whether it helps, hurts or changes answers here.

    Examples:

      perfdoctor verify load-in-bfloat16 --model tiny

      perfdoctor verify cache=static --model tiny

      perfdoctor verify --all --model tiny

      perfdoctor verify -c 8 --before 'vllm serve m --port {port}' --after 'sglang serve m --port {port}'

      perfdoctor verify --endpoint-before http://127.0.0.1:8000 --endpoint-after http://127.0.0.1:8001

    Both sides answer the same questions greedily first: a fix that changes answers is called so. Then they
    are driven in turn, so that what drifts hits both; runs of one side that follow each other tell the noise.
    """
    from perfdoctor import verify_commands
    from perfdoctor.model import Trials, Verification

    found: Verification | Trials = (
        _all(fix, given, out, quiet) if every else verify_commands.run(_plan(fix, given, out), quiet)
    )
    verify_commands.show(found, as_json=json)
    code = verify_commands.exit_code(found)
    if code:
        raise typer.Exit(code)


def _all(fix: str | None, given: Given, out: Out, quiet: bool) -> Any:
    from perfdoctor import verify_commands
    from perfdoctor.verify import of_fix

    if fix is not None or "model" not in given or _servers(given):
        raise UsageError(
            "--all tries the catalogue on a local model", "", "perfdoctor verify --all --model tiny"
        )
    scenario, more = _scenario(given), _common(given, None)
    make = partial(
        of_fix, scenario=scenario, users=given.get("concurrency"), pairs=given.get("pairs", PAIRS), **more
    )
    return verify_commands.run_all(make, given["model"], more["argv"], out, quiet)


def _plan(name: str | None, given: Given, out: Out) -> Plan:
    from perfdoctor.model import TriedSide
    from perfdoctor.verify import _plan, foreign, of_fix, of_settings
    from perfdoctor.verify._command import parse

    servers = _servers(given)
    scenario, more = _scenario(given), _common(given, out)
    users, pairs = given.get("concurrency"), given.get("pairs", PAIRS)
    if not servers:
        if name is None:
            raise UsageError(
                "no fix was named",
                "",
                "list them with: perfdoctor explain; or name both sides, --before 'CMD'",
            )
        make = partial(of_settings, name) if "=" in name else partial(of_fix, _plan.find_fix(name))
        if "model" not in given:
            raise UsageError("no model was named", "", f"perfdoctor verify {name} --model tiny")
        return make(scenario, users, pairs, **more)
    if servers == "command":
        commands = tuple(parse(given[side], side, given.get("port")) for side in ("before", "after"))
        before, after = (TriedSide(command=command.text) for command in commands)
        more |= {"commands": commands}
    else:
        before, after = (TriedSide(endpoint=given[f"endpoint_{side}"]) for side in ("before", "after"))
    return foreign(name or "after", scenario, users, pairs, before=before, after=after, **more)


def _servers(given: Given) -> str | None:
    """`command` or `endpoint` where sides are servers; UsageError for half of two, or for two kinds."""
    kinds = {"command": ("before", "after"), "endpoint": ("endpoint_before", "endpoint_after")}
    named = {kind: [name for name in names if name in given] for kind, names in kinds.items()}
    found = [kind for kind, names in named.items() if names]
    if not found:
        return None
    if len(found) > 1:
        raise UsageError("give two commands or two endpoints, not both", "", "see perfdoctor verify --help")
    if len(named[found[0]]) == 1:
        have, lacks = named[found[0]][0], next(n for n in kinds[found[0]] if n not in given)
        flag = lacks.replace("_", "-")
        raise UsageError(f"--{have.replace('_', '-')} has no counterpart", "", f"add --{flag}")
    return found[0]


def _common(given: Given, out: Out) -> dict[str, Any]:
    import sys

    from perfdoctor.flags import secret_of
    from perfdoctor.redact import Redactor, command_secrets, masked_arguments

    secrets = [
        s for side in ("before", "after") if side in given for s in command_secrets(_words(given[side]))
    ]
    clean = Redactor(secrets).clean
    return {
        "argv": tuple(map(clean, masked_arguments(sys.argv[1:]))),
        "out": out,
        "secret": secret_of(given.get("api_key_env")),
        "ready_s": values.seconds(given["ready_timeout"]) if "ready_timeout" in given else 600.0,
    }


def _words(command: str) -> list[str]:
    import shlex

    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _scenario(given: Given) -> Scenario:
    """Its endpoint is a place that each side fills."""
    import msgspec

    from perfdoctor.model import Load, Scenario, Target

    place = None if "model" in given and not _servers(given) else "http://127.0.0.1"
    load = Load(concurrency=1, warmup_requests=1, temperature=0.0)  # greedy: the same answers, the same work
    default = Scenario(target=Target(endpoint=place), load=load)
    scenario = flags.scenario_of(given, GROUPS, default)
    options = {name: str(given[name]) for name in ("device", "dtype", "threads") if name in given}
    extra = {} if place else {"ignore_eos": True}
    target = msgspec.structs.replace(
        scenario.target, options=options, extra_body={**extra, **scenario.target.extra_body}
    )
    return msgspec.structs.replace(scenario, target=target)
