"""`perfdoctor calibrate`"""

from __future__ import annotations

from typing import Annotated

import typer

from perfdoctor.cli._app import app
from perfdoctor.cli._common import AsJson, Quiet


@app.command(short_help="Measure the load generator itself: ceiling and error.")
def calibrate(
    quick: Annotated[bool, typer.Option("--quick", help="Three levels in under ten seconds.")] = False,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """What this machine's load generator can measure, and how wrong it is: against a server of known pace.

    Example:

      perfdoctor calibrate
    """
    from perfdoctor import commands

    commands.calibrate(quick, as_json=json, quiet=quiet)
