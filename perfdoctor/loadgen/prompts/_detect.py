"""Which source can read a file of prompts, by what stands in it and not by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from perfdoctor.loadgen.prompts._files import read_text


def detect(path: Path) -> Literal["jsonl", "csv", "sharegpt"]:
    """UsageError for a file that is no text. What is neither JSON by its first character is a table."""
    first = read_text(path).lstrip()[:1]
    if first == "[":
        return "sharegpt"
    return "jsonl" if first == "{" else "csv"
