"""`perfdoctor explain`"""

from __future__ import annotations

from typing import Annotated

import typer

from perfdoctor.cli._app import app


@app.command(short_help="Print a page: rule, fix, signal, error, measure or claim.")
def explain(
    name: Annotated[str | None, typer.Argument(help="A rule, fix, signal, error, measure or claim.")] = None,
) -> None:
    """Print the page of a rule, fix, signal, error, measure or documented claim; without a name, list them.

    Examples:

      perfdoctor explain serial-server

      perfdoctor explain ttft

      perfdoctor explain D1-05
    """
    from perfdoctor import commands

    commands.explain(name)
