"""The console script: every expected failure leaves as three lines and its exit code."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer

from perfdoctor.cli._app import INTERRUPTED, app, debugging
from perfdoctor.errors import PerfdoctorError, UsageError

INTERNAL = 70  # a bug of ours; EX_SOFTWARE of sysexits.h

_NotUnderstood: Any = typer.BadParameter.__base__  # the usage error of click, which typer does not export


def main() -> None:
    """Run the command line and exit."""
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
        if debugging():
            raise
        console.print_error(error)
        return error.exit_code
    except Exception as error:
        if debugging():
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
        said = error.format_message().rstrip(".")
        stray = "extra argument" in said and "://" in said
        do = f"{command} --endpoint URL" if stray else f"see {command} --help"
        console.print_error(UsageError(said, "", do))
    return UsageError.exit_code
