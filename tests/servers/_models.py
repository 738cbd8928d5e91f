"""The tiny model as a folder and as GGUF, made once and kept in the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path

import perfdoctor.local


def folder() -> Path:
    """Where models of this version of the maker are kept; a changed maker makes them anew."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    maker = b"".join(
        path.read_bytes() for path in sorted(Path(perfdoctor.local.__path__[0]).glob("tiny*.py"))
    )
    return cache / "perfdoctor" / "models" / f"tests-{zlib.crc32(maker):08x}"


def tiny() -> Path:
    return _make()[0]


def gguf(preset: str = "tiny") -> Path:
    """For llama.cpp. `small` is a file of 400 MB."""
    return _make(preset)[1]


def _make(preset: str = "tiny") -> tuple[Path, Path]:
    model, file = folder() / preset, folder() / f"{preset}.gguf"
    if not (model.is_dir() and file.is_file()):
        folder().mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(f".{os.getpid()}")
        command = [sys.executable, "-m", "perfdoctor.local.tiny", "--preset", preset, "--out", str(model)]
        command += ["--gguf", str(fresh)]
        subprocess.run(command, check=True)
        fresh.replace(file)
    return model, file
