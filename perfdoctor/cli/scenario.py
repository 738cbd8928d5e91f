"""`perfdoctor scenario`"""

from __future__ import annotations

from typing import Annotated

import typer

from perfdoctor.cli._app import scenarios
from perfdoctor.cli._common import Quiet


@scenarios.command(name="list")
def scenario_list() -> None:
    """List the labelled faults."""
    from perfdoctor import scenario

    scenario.show_list()


@scenarios.command(name="run")
def scenario_run(
    names: Annotated[list[str], typer.Argument(help="Names from `scenario list`, or `all`.")],
    quiet: Quiet = False,
) -> None:
    """Cause a fault for real, diagnose it, and say whether the verdict was right. Exit 1 when one was not.

    Example:

      perfdoctor scenario run serial-server
    """
    from perfdoctor import scenario

    if not scenario.run_all(names, quiet):
        raise typer.Exit(1)
