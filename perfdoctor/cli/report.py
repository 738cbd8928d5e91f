"""`perfdoctor report`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfdoctor.cli._app import app
from perfdoctor.cli._common import AsJson, Definitions, FailOn, Style
from perfdoctor.errors import UsageError


@app.command()
def report(
    run: Annotated[str, typer.Argument(help="A run folder, its name, or `latest`.")] = "latest",
    html: Annotated[bool, typer.Option("--html", help="One self-contained file.")] = False,
    json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="For an issue or a wiki.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="One row per request.")] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="One line per request, durations computed.")] = False,
    slo: Annotated[
        str | None,
        typer.Option(metavar="'ttft_p95<500ms'", help="Judge by this SLO instead of the run's own."),
    ] = None,
    fail_on: FailOn = None,
    metric_style: Style = None,
    definitions: Definitions = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Where to write.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
) -> None:
    """Show a run again, also one that was interrupted or killed.

    Examples:

      perfdoctor report latest

      perfdoctor report latest --html -o report.html

      perfdoctor report latest --metric-style vllm

      perfdoctor report perfdoctor-runs/20261130-101500-load-test --csv -o requests.csv
    """
    from perfdoctor import commands, sweep_commands, verify_commands

    forms = {"html": html, "json": json, "markdown": markdown, "csv": csv, "jsonl": jsonl}
    asked = [name for name, on in forms.items() if on]
    if len(asked) > 1:
        raise UsageError(
            "give one of --html, --json, --markdown, --csv and --jsonl", "", "run it once for each"
        )
    for limits in (slo, fail_on):
        if limits:
            commands.check_limits(limits)
    tried = verify_commands.folder_of(run)
    if tried is not None:
        _report_verification(tried, asked, slo or fail_on or metric_style or definitions or out)
        return
    folder = sweep_commands.folder_of(run)
    if folder is not None:
        _report_sweep(folder, slo, asked, fail_on or metric_style or definitions or out)
        return
    code = commands.report(
        run,
        asked[0] if asked else None,
        out,
        force=force,
        definitions=definitions,
        slo=slo,
        fail_on=fail_on,
        style=metric_style,
    )
    if code:
        raise typer.Exit(code)


def _report_verification(folder: Path, asked: list[str], other: object) -> None:
    """The trial of a fix is a table too."""
    from perfdoctor import verify_commands

    if other or asked not in ([], ["json"]):
        raise UsageError(
            f"{folder} is a verification: it is shown as a table or with --json",
            "The other forms are of one run, and it holds many.",
            f"perfdoctor compare {folder}/before {folder}/after --markdown",
        )
    verify_commands.show(verify_commands.again(folder), as_json=bool(asked))


def _report_sweep(folder: Path, slo: str | None, asked: list[str], other: object) -> None:
    """A sweep is a table; what belongs to a single run is shown of one of its levels."""
    from perfdoctor import sweep_commands

    if other or asked not in ([], ["json"]):
        raise UsageError(
            f"{folder} is a sweep: it is shown as a table or with --json",
            "The other forms are of one run, and each of its levels is one.",
            f"perfdoctor report {folder}/FOLDER --html; list them with: ls {folder}",
        )
    found = sweep_commands.again(folder, slo)
    sweep_commands.show(found, as_json=bool(asked))
    if slo and (code := sweep_commands.judged_code(found)):
        raise typer.Exit(code)
