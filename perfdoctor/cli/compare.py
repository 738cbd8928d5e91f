"""`perfdoctor compare`"""

from __future__ import annotations

from typing import Annotated

import typer

from perfdoctor.cli._app import app
from perfdoctor.cli._common import RESULT, AsJson
from perfdoctor.errors import UsageError

FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="'ttft_p95>+10%'",
        help="Changes that must not be; exit 1 where one is past its limit and no chance.",
        rich_help_panel=RESULT,
    ),
]


@app.command(short_help="Two runs against each other: what changed, beyond chance.")
def compare(
    before: Annotated[str, typer.Argument(help="A run, a sweep, or a folder of several runs.")],
    after: Annotated[str, typer.Argument(help="The same, after the change; or `latest`.")],
    fail_on: FailOn = None,
    json: AsJson = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="For an issue or a pull request.", rich_help_panel=RESULT)
    ] = False,
) -> None:
    """Two runs, or two folders of several, against each other: ratios with their 95 % intervals.

    Examples:

      perfdoctor compare perfdoctor-runs/before latest

      perfdoctor compare before after --fail-on 'ttft_p95>+10%,requests_per_s<-5%'

      perfdoctor compare nightly/main nightly/branch --markdown

    --fail-on exits with 1 where a change is past its limit and its interval leaves out that nothing changed;
    with 4 where a change past its limit has no interval, or there is no such number. Rates of failures change
    by percentage points.
    """
    from perfdoctor import compare_commands

    if json and markdown:
        raise UsageError("give one of --json and --markdown", "", "run it once for each")
    found = compare_commands.run(before, after, fail_on)
    compare_commands.show(found, "json" if json else "markdown" if markdown else None)
    code = compare_commands.exit_code(found)
    if code:
        raise typer.Exit(code)
