"""How many tokens one chunk holds, where the server tells: by usage in every chunk, or by logprobs."""

from __future__ import annotations

from typing import Any

import msgspec

from perfdoctor.loadgen.answer import Answer, Usage, decode_or_none


def count_chunk(answer: Answer, choice: Any, usage: msgspec.Raw, logprobs: Any, shown: bool) -> None:
    """Note the tokens of a frame; `shown`: it had text, and its chunk was just stamped.

    Tokens without text, which a parser holds back, belong to the next chunk that shows some. Usage goes
    before logprobs, as it counts them all.
    """
    told = decode_or_none(usage, Usage)
    if told is not None and told.completion_tokens is not None:
        if shown:
            answer.count_to(told.completion_tokens, choice if isinstance(choice, int) else 0)
    elif tokens := _entries(logprobs):
        answer.count(tokens, shown)


def _entries(logprobs: Any) -> int:
    """`content` and `refusal` in chat, `tokens` in completions: one entry a token."""
    if not isinstance(logprobs, dict):
        return 0
    lists = (logprobs.get(name) for name in ("content", "refusal", "tokens"))
    return sum(len(entries) for entries in lists if isinstance(entries, list))
