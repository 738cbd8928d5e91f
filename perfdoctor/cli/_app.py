"""The application that every command adds itself to, and the flags before any command."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

INTERRUPTED = 130
CROSSED = 1  # a limit of --slo, --fail-on or --max-error-rate


class Grouped(TyperCommand):
    """A command of many flags, whose plain --help lists them under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None:
                kind = "Arguments" if parameter.param_type_name == "argument" else "Other"
                rows.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append(row)
        for title, listed in rows.items():
            with formatter.section(title):
                formatter.write_dl(listed)


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


def debugging() -> bool:
    """Read from the arguments themselves, since parsing them may be what failed."""
    return "--debug" in sys.argv


def exit_for_state(state: str) -> None:
    if state == "interrupted":
        raise typer.Exit(INTERRUPTED)
