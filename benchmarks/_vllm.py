"""The request function of `vllm bench serve`, without installing vLLM.

One file of its wheel is read by HTTP ranges, through the package index that pip is set up for, and put into a
folder of the caller. It needs aiohttp, regex and tqdm beside itself.
"""

from __future__ import annotations

import importlib.util
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import httpx

MEMBER = "vllm/benchmarks/lib/endpoint_request_func.py"
BLOCK_BYTES = 2**18  # of one range: the table of a wheel's contents takes a few


class Left(Exception):
    """Why this row is left out."""


class _Remote(io.RawIOBase):
    """A file behind a URL, read where it is looked at."""

    def __init__(self, url: str) -> None:
        self._client, self._url, self._at = httpx.Client(follow_redirects=True, timeout=30), url, 0
        told = self._client.head(url)
        if told.headers.get("accept-ranges") != "bytes":
            raise Left("the package index serves no ranges of files, and the wheel is too big to load whole")
        self._size = int(told.headers["content-length"])

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        size = min(len(buffer), self._size - self._at)
        if size <= 0:
            return 0
        last = self._at + size - 1
        answer = self._client.get(self._url, headers={"Range": f"bytes={self._at}-{last}"})
        answer.raise_for_status()
        buffer[:size] = answer.content
        self._at += size
        return size


def load(folder: Path) -> tuple[ModuleType, str]:
    """(the module, vLLM's version). Raises Left."""
    report = folder / "report.json"
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "--quiet"]
    try:
        subprocess.run([*pip, "--report", report, "vllm"], check=True, capture_output=True, timeout=60)
        found = json.loads(report.read_text())["install"][0]
        with zipfile.ZipFile(io.BufferedReader(_Remote(found["download_info"]["url"]), BLOCK_BYTES)) as wheel:
            (folder / "vllm_request.py").write_bytes(wheel.read(MEMBER))
    except (subprocess.SubprocessError, httpx.HTTPError, OSError, KeyError, ValueError) as error:
        raise Left(f"its wheel cannot be read here ({type(error).__name__})") from error
    spec = importlib.util.spec_from_file_location("vllm_request", folder / "vllm_request.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their own module up
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise Left(f"it needs a module that is not here: {error.name}") from error
    return module, found["metadata"]["version"]
