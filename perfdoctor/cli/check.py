"""`perfdoctor check`"""

from __future__ import annotations

from perfdoctor import flags
from perfdoctor.cli._app import app
from perfdoctor.cli._common import AsJson
from perfdoctor.flags import Given


@app.command(short_help="What can be measured here, and how to enable the rest.")
@flags.takes((flags.ENDPOINT,))
def check(given: Given, json: AsJson = False) -> None:
    """Which probes work here, and the command that would enable each of the others.

    Example:

      perfdoctor check
    """
    from perfdoctor import commands

    commands.check(given.get("endpoint"), as_json=json)
