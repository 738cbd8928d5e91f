"""Files that users bring: read as text, or refused with the reason. Pure but for the reading."""

from __future__ import annotations

from pathlib import Path

from perfdoctor.errors import UsageError

MOST_BYTES = 2**30  # decoded text takes several times as much memory
_ENCODINGS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
_PACKED = {b"\x1f\x8b": "gunzip", b"PK\x03\x04": "unzip", b"\x28\xb5\x2f\xfd": "unzstd", b"PAR1": "convert"}


def read_text(path: Path) -> str:
    """The file as text without its byte order mark; line ends stay as they are.

    UTF-8, or UTF-16 with a mark. Nothing is guessed: a wrong guess would send other prompts than the file's.
    """
    raw = _read(path)
    for start, tool in _PACKED.items():
        if raw.startswith(start):
            raise UsageError(
                f"{path} is packed or binary", "Prompts are read from plain text.", f"{tool} it first"
            )
    encoding = next((name for mark, name in _ENCODINGS.items() if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"line {line} of {path} is not in UTF-8",
            "Perhaps it was written in an older encoding, such as Latin-1.",
            f"iconv -f latin1 -t utf-8 {path} > utf8-{path.name}",
        ) from error
    if "\0" in text:
        raise UsageError(f"{path} is no text", "It holds NUL bytes.", "give a JSONL, CSV or ShareGPT file")
    if not text.strip():
        raise UsageError(f"{path} is empty", "", "give a file with one prompt a line")
    return text


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(
                f"{path} is larger than {MOST_BYTES // 2**30} GiB",
                "All prompts are held in memory.",
                f"cut it, for example: head -n 100000 {path} > part-{path.name}",
            )
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", "", "check the path and its rights"
        ) from error


def wrong_row(path: Path, place: str, why: str) -> UsageError:
    """`place`: `line 3`, `item 7`."""
    return UsageError(
        f"{place} of {path} is no prompt: {why}",
        "A row needs one of prompt, text, messages or conversations.",
        'for example {"prompt": "Hello", "max_tokens": 32}',
    )
