"""Parameters that several commands share and that are no part of a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

RESULT = "Result"  # the heading they stand under in --help

Out = Annotated[Path | None, typer.Option("-o", "--out", help="Run folder to write.", rich_help_panel=RESULT)]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print the JSON contract and nothing else on stdout.", rich_help_panel=RESULT
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("-q", "--quiet", help="No progress and no notes on stderr.", rich_help_panel=RESULT),
]
Definitions = Annotated[
    bool, typer.Option("--definitions", help="Say what each number means.", rich_help_panel=RESULT)
]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="'error_rate>1%'",
        help="What must not be; exit 1 if it is. Names as in --json.",
        rich_help_panel=RESULT,
    ),
]
Style = Annotated[
    Literal["vllm", "sglang", "guidellm", "aiperf"] | None,
    typer.Option(
        "--metric-style",
        metavar="vllm|sglang|guidellm|aiperf",
        help="Add that tool's table, recomputed from the same instants by its definitions.",
        rich_help_panel=RESULT,
    ),
]
