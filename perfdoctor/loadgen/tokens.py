"""How many tokens an answer has, and by whose word.

In this order: the server's usage; its counts of every chunk (continuous usage, logprobs); a tokenizer given
by the user, over the answer's text; the number of chunks. Which it was is part of every record.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.answer import Answer

TokenSource = Literal["usage", "per_chunk", "tokenizer", "chunks"]
Counter = Callable[[str], int]  # tokens of a text, without those that a template adds
_FILE = "tokenizer.json"


def count_output(answer: Answer, streamed: bool) -> tuple[int | None, TokenSource | None]:
    """(tokens, whose word) of an answer; (None, None) for one that was not streamed and tells nothing."""
    told = answer.usage_counts()[1]
    if told is not None:
        return told, "usage"
    chunks = len(answer.token_ns)
    if chunks and len(answer.token_counts) == chunks:
        return sum(answer.token_counts), "per_chunk"
    return (chunks, "chunks") if streamed else (None, None)


def count_texts(answer: Answer, counter: Counter) -> int | None:
    """Tokens of the texts that were kept. None without any, as of a tool call: then chunks are the better
    count. Reasoning and answer are counted apart, since the mark between them is not in the text.
    """
    texts = ["".join(answer.thoughts or ()), "".join(answer.texts or ())]
    return sum(counter(text) for text in texts if text) or None


def load_counter(folder: str) -> Counter:
    """Counts by a folder's tokenizer.json. UsageError where there is none or it cannot be read."""
    tokenizer = load_tokenizer(folder)

    def count(text: str) -> int:
        # as a batch: that alone lets other threads run meanwhile, and makes no table of offsets
        return len(tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids)

    return count


def load_tokenizer(folder: str) -> Any:
    path = Path(folder)
    path = path / _FILE if path.is_dir() else path
    if not path.is_file():
        raise UsageError(
            f"--tokenizer {folder} holds no {_FILE}",
            "Tokens are counted by the file that fast tokenizers are stored in.",
            "name the model's folder, or leave --tokenizer out: servers tell their counts",
        )
    try:
        import tokenizers
    except ImportError as error:
        raise UsageError(
            "--tokenizer needs the library `tokenizers`, which is not installed",
            "It comes with the extra for local models.",
            "pip install 'perfdoctor[local]', or pip install tokenizers",
        ) from error
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception, and panics derive from BaseException
        raise UsageError(
            f"{path} is no tokenizer that `tokenizers` {tokenizers.__version__} can read",
            str(error)[:200],
            "download the folder again, or upgrade: pip install -U tokenizers",
        ) from error
