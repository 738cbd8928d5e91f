"""The command line: typer signatures and exit codes.

Do not import anything heavy here: every other import sits inside a command's body, so that `--help` stays
fast. `tests/contract/test_startup.py` holds that.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from perfdoctor import flags
from perfdoctor.errors import CannotJudge, PerfdoctorError, UsageError

INTERRUPTED = 130
INTERNAL = 70  # a bug of ours; EX_SOFTWARE of sysexits.h
STEADY_S = 15.0  # how long `diagnose` drives load unless told otherwise

_NotUnderstood: Any = typer.BadParameter.__base__  # the usage error of click, which typer does not export

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
scenarios = typer.Typer(no_args_is_help=True, help="The labelled fault benchmark.")
app.add_typer(scenarios, name="scenario")


@app.callback()
def root(
    no_color: Annotated[bool, typer.Option("--no-color", help="Plain text.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,  # see _debugging
) -> None:
    """Says where the time of an LLM server goes, what will make it faster, and by how much at most.

    Examples:

      perfdoctor diagnose --model tiny

      perfdoctor diagnose --endpoint http://127.0.0.1:8000

      perfdoctor load-test --endpoint http://127.0.0.1:8000 -c 20 -n 200

      perfdoctor report latest --html
    """
    if no_color:
        from perfdoctor import console

        console.disable_colour()


def _debugging() -> bool:
    """Read from the arguments themselves, since parsing them may be what failed."""
    return "--debug" in sys.argv


@app.command()
def diagnose(
    run: Annotated[str | None, typer.Argument(help="Judge this run folder again, or `latest`.")] = None,
    endpoint: flags.Endpoint = None,
    model: flags.Model = None,
    api: flags.Api = "chat",
    concurrency: flags.Concurrency = 4,
    requests: flags.Requests = None,
    duration: flags.Duration = None,
    warmup: flags.Warmup = 2,
    prompt_tokens: flags.PromptTokens = 48,
    output_tokens: flags.OutputTokens = 48,
    timeout: flags.Timeout = "2m",
    api_key_env: flags.KeyEnv = None,
    header: flags.Headers = None,
    device: Annotated[str | None, typer.Option(metavar="cpu|cuda", help="Of the local model.")] = None,
    dtype: Annotated[str | None, typer.Option(metavar="bfloat16", help="Of the local model.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads of the local model.")] = None,
    out: flags.Out = None,
    json: flags.AsJson = False,
    quiet: flags.Quiet = False,
) -> None:
    """Find where the time goes: drive load, sample the machine, name the bottleneck and its fix.

    Examples:

      perfdoctor diagnose --model tiny

      perfdoctor diagnose --endpoint http://127.0.0.1:8000 -c 8

      perfdoctor diagnose latest
    """
    from perfdoctor import commands
    from perfdoctor.model import Load, Prompts, Scenario, Target

    if run is not None:
        if endpoint or model:
            raise UsageError("give a run folder or a target, not both", "", "see perfdoctor diagnose --help")
        bundle = commands.judge(run)
    else:
        options = {"device": device, "dtype": dtype, "threads": str(threads) if threads else None}
        target = Target(
            endpoint=endpoint if endpoint or model else flags.found_server(),
            model=model,
            api=flags.api(api),
            headers=flags.headers(header),
            api_key_env=api_key_env,
            options={k: v for k, v in options.items() if v},
        )
        load = Load(
            concurrency=concurrency,
            requests=requests,
            duration_s=flags.seconds(duration) if duration else None if requests else STEADY_S,
            warmup_requests=warmup,
            baseline_requests=5,
            prompts=Prompts(input_tokens=prompt_tokens, output_tokens=output_tokens),
            timeout_s=flags.seconds(timeout),
        )
        orders = flags.orders("diagnose", Scenario(target=target, load=load), out)
        bundle = commands.run_and_judge(orders, quiet)
    commands.show(bundle, as_json=json)
    if bundle.diagnosis and run is None:
        _exit_for_state(bundle.diagnosis.state)
    if bundle.diagnosis and bundle.diagnosis.verdict.status in ("untrusted", "insufficient_evidence"):
        raise typer.Exit(CannotJudge.exit_code)


@app.command(name="load-test")
def load_test(
    endpoint: flags.Endpoint = None,
    model: flags.Model = None,
    api: flags.Api = "chat",
    concurrency: flags.Concurrency = 1,
    requests: flags.Requests = None,
    duration: flags.Duration = None,
    warmup: flags.Warmup = 1,
    prompt_tokens: flags.PromptTokens = 48,
    output_tokens: flags.OutputTokens = 48,
    timeout: flags.Timeout = "2m",
    api_key_env: flags.KeyEnv = None,
    header: flags.Headers = None,
    definitions: Annotated[bool, typer.Option("--definitions", help="Say what each number means.")] = False,
    out: flags.Out = None,
    json: flags.AsJson = False,
    quiet: flags.Quiet = False,
) -> None:
    """Drive a server with a fixed number of users and measure what they see.

    Examples:

      perfdoctor load-test --endpoint http://127.0.0.1:8000 -c 20 -n 200

      perfdoctor load-test --endpoint http://127.0.0.1:8000 -c 4 --duration 30s --json
    """
    from perfdoctor import commands
    from perfdoctor.model import Load, Prompts, Scenario, Target

    target = Target(
        endpoint=endpoint if endpoint or model else flags.found_server(),
        model=model,
        api=flags.api(api),
        headers=flags.headers(header),
        api_key_env=api_key_env,
    )
    load = Load(
        concurrency=concurrency,
        requests=requests or (None if duration else 10 * concurrency),
        duration_s=flags.seconds(duration) if duration else None,
        warmup_requests=warmup,
        prompts=Prompts(input_tokens=prompt_tokens, output_tokens=output_tokens),
        timeout_s=flags.seconds(timeout),
    )
    summary = commands.load_test(flags.orders("load-test", Scenario(target=target, load=load), out), quiet)
    commands.show_summary(summary, as_json=json, definitions=definitions)
    _exit_for_state(summary.state)
    if summary.trust.status == "invalid":
        raise typer.Exit(CannotJudge.exit_code)


@app.command()
def report(
    run: Annotated[str, typer.Argument(help="A run folder, its name, or `latest`.")] = "latest",
    html: Annotated[bool, typer.Option("--html", help="One self-contained file.")] = False,
    json: flags.AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="For an issue or a wiki.")] = False,
    definitions: Annotated[bool, typer.Option("--definitions", help="Say what each number means.")] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Where to write.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
) -> None:
    """Show a run again, also one that was interrupted or killed.

    Examples:

      perfdoctor report latest

      perfdoctor report latest --html -o report.html

      perfdoctor report perfdoctor-runs/20261130-101500-diagnose --json
    """
    from perfdoctor import commands

    asked = [name for name, on in (("html", html), ("json", json), ("markdown", markdown)) if on]
    if len(asked) > 1:
        raise UsageError("give one of --html, --json and --markdown", "", "run it once for each")
    commands.report(run, asked[0] if asked else None, out, force=force, definitions=definitions)


@app.command()
def check(
    endpoint: flags.Endpoint = None,
    json: flags.AsJson = False,
) -> None:
    """Which probes work here, and the command that would enable each of the others.

    Example:

      perfdoctor check
    """
    from perfdoctor import commands

    commands.check(endpoint, as_json=json)


@app.command()
def explain(
    name: Annotated[str | None, typer.Argument(help="A rule, fix, signal, error or measure.")] = None,
) -> None:
    """Print the page of a rule, fix, signal, error or measure; without a name, list them.

    Examples:

      perfdoctor explain serial-server

      perfdoctor explain ttft
    """
    from perfdoctor import commands

    commands.explain(name)


@scenarios.command(name="list")
def scenario_list() -> None:
    """List the labelled faults."""
    from perfdoctor import scenario

    scenario.show_list()


@scenarios.command(name="run")
def scenario_run(
    names: Annotated[list[str], typer.Argument(help="Names from `scenario list`, or `all`.")],
    quiet: flags.Quiet = False,
) -> None:
    """Cause a fault for real, diagnose it, and say whether the verdict was right. Exit 1 when one was not.

    Example:

      perfdoctor scenario run serial-server
    """
    from perfdoctor import scenario

    if not scenario.run_all(names, quiet):
        raise typer.Exit(1)


def _exit_for_state(state: str) -> None:
    if state == "interrupted":
        raise typer.Exit(INTERRUPTED)


def main() -> None:
    """The console script: every expected failure leaves as three lines and its exit code."""
    from perfdoctor import console, interrupts

    console.prepare_streams()
    interrupts.install()
    try:
        code = _run()
        sys.stdout.flush()
    except (BrokenPipeError, console.ReaderGone):
        code = 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter complains when it flushes
    interrupts.ignore()
    sys.exit(code)


def _run() -> int:
    from perfdoctor import console

    try:
        return app(standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except _NotUnderstood as error:
        return _show_usage(error)
    except console.ReaderGone:
        raise
    except PerfdoctorError as error:
        if _debugging():
            raise
        console.print_error(error)
        return error.exit_code
    except Exception as error:
        if _debugging():
            raise
        console.print_error(
            PerfdoctorError(
                f"internal error, {type(error).__name__}: {error}",
                "This is a defect of perfdoctor; the run folder, if any, keeps what was measured.",
                "run again with `perfdoctor --debug ...` and report the traceback",
            )
        )
        return INTERNAL


def _show_usage(error: Any) -> int:
    """typer's own errors in our form; a command without arguments shows its help."""
    from perfdoctor import console

    if "\n" in str(error):
        error.show()
    else:
        command = error.ctx.command_path if error.ctx else "perfdoctor"
        console.print_error(UsageError(error.format_message().rstrip("."), "", f"see {command} --help"))
    return UsageError.exit_code
