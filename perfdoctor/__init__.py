"""perfdoctor: where the time of an LLM server goes, what cures it, and the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pathlib import Path

    from perfdoctor.store import Run


def open_run(path: str | Path = "latest") -> Run:
    """Open a run folder for notebooks: `.requests()` and `.samples()` give pandas DataFrames.

    `latest` takes the newest folder under the runs root. Raises RunFolderError when there is none.
    """
    from perfdoctor.store import open_run as open_folder

    return open_folder(path)
