"""Parameters that several commands share and that are no part of a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Out = Annotated[Path | None, typer.Option("-o", "--out", help="Run folder to write.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON contract and nothing else on stdout.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress and no notes on stderr.")]
Definitions = Annotated[bool, typer.Option("--definitions", help="Say what each number means.")]
FailOn = Annotated[
    str | None,
    typer.Option(metavar="'error_rate>1%'", help="What must not be; exit 1 if it is. Names as in --json."),
]
Style = Annotated[
    Literal["vllm", "sglang", "guidellm", "aiperf"] | None,
    typer.Option(
        "--metric-style",
        metavar="vllm|sglang|guidellm|aiperf",
        help="Add that tool's table, recomputed from the same instants by its definitions.",
    ),
]
