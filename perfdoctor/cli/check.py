"""`perfdoctor check`"""

from __future__ import annotations

from perfdoctor import flags
from perfdoctor.cli._app import Grouped, app
from perfdoctor.cli._common import AsJson
from perfdoctor.flags import Given

WAY = tuple(
    flag for flag in flags.WIRE if flag.name not in ("transport", "http2")
)  # of a load, not of a look
GROUPS = (flags.ADDRESS, WAY)


@app.command(cls=Grouped, short_help="What can be measured here, and how to enable the rest.")
@flags.takes(*GROUPS)
def check(given: Given, json: AsJson = False) -> None:
    """Which probes work here, and the command that would enable each of the others.

    Examples:

      perfdoctor check

      perfdoctor check --endpoint http://127.0.0.1:8000
    """
    from perfdoctor import commands
    from perfdoctor.model import Scenario

    target = flags.lay_over(Scenario(), given, GROUPS).target
    commands.check(target, flags.secret_of(target.api_key_env), as_json=json)
