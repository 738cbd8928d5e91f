"""What one streamed answer has told so far: mutable, filled event by event, judged at the end.

Stamps stay raw integers of perf_counter_ns until the request ends, so that a token costs one list append.
"""

from __future__ import annotations

from typing import Any

import msgspec

MOST = 10**8  # tokens; the longest contexts hold ten million
_NO_JSON = msgspec.Raw()


class Usage(msgspec.Struct):
    """Token counts as OpenAI names them. Any: a server's odd type must not cost the whole stream."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: Any = None
    input_tokens: Any = None  # the same three as the Responses API names them
    output_tokens: Any = None
    input_tokens_details: Any = None


class Answer:
    """The contents of one answer. `error` is the text of an in-band error."""

    # An answer changes few of these, and a class's value costs nothing to set.
    _held = 0  # tokens that came without text since the last chunk
    texts: list[str] | None = None  # of the answer, in order; None: not wanted
    thoughts: list[str] | None = None  # of the reasoning before it
    choice: Any = None  # index of the choice that was noted last
    first_event_ns: int | None = None
    first_answer_ns: int | None = None
    first_text: str | None = None
    text: Any = None  # payload of the last token that was parsed; a tool call is no text
    finish_reason: str | None = None
    done = False  # [DONE] came
    error: str | None = None
    usage = _NO_JSON  # the last one seen, decoded when the request ends
    timings = _NO_JSON  # llama.cpp

    def __init__(self) -> None:
        self.token_ns: list[int] = []  # one stamp a chunk with generated payload
        self.token_counts: list[int] = []  # tokens of each; another length than token_ns: not known
        self._counted: dict[int, int] = {}  # tokens told so far, by choice
        self._choices: dict[int, bool] = {}  # whether each has finished

    def begin(self, reasoning: bool, at_ns: int) -> None:
        """Called after each token until the first that is no reasoning."""
        if not reasoning:
            self.first_answer_ns = at_ns
        if len(self.token_ns) == 1 and isinstance(self.text, str):
            self.first_text = self.text  # whole: a secret in it is recognised before it is cut

    def beside_tokens(self) -> tuple[object, ...]:
        """Everything but the tokens; unchanged by a frame that only brings one."""
        return self.usage, self.timings, self.finish_reason, self.error, self.done

    def add_extras(self, usage: msgspec.Raw, timings: msgspec.Raw, error: msgspec.Raw) -> None:
        """What may ride in any frame. The last usage wins; null, false and empty members are none."""
        if decode_or_none(usage):
            self.usage = usage
        if decode_or_none(timings):
            self.timings = timings
        value = decode_or_none(error)
        if value:
            message = value.get("message") if isinstance(value, dict) else None
            self.error = str(message or value)

    @property
    def complete(self) -> bool:
        """The server said that it was finished: by a reason, or by [DONE] and the usage.

        A bare end of the bytes is not enough. Nor is a bare [DONE]: some servers drop an answer for the next
        one and end its stream so.
        """
        if self.finish_reason is None:
            return self.done and bool(self.usage)
        return self.done or all(self._choices.values())

    def note_choice(self, index: Any, finish_reason: Any) -> None:
        """Called when another choice goes on than before, and when one finishes."""
        self.choice = index
        number = index if isinstance(index, int) else 0
        self._choices[number] = bool(finish_reason) or self._choices.get(number, False)
        if finish_reason:
            self.finish_reason = str(finish_reason)

    def keep(self, said: Any, thought: Any) -> None:
        """Note a chunk's text, where it is wanted and is text."""
        if self.texts is not None and isinstance(said, str):
            self.texts.append(said)
        if self.thoughts is not None and isinstance(thought, str):
            self.thoughts.append(thought)

    def count_to(self, total: Any, choice: int = 0) -> None:
        """The chunk just noted ends at this many tokens of its choice, as usage in every chunk tells."""
        if _count(total) is not None:
            self.count(total - self._counted.get(choice, 0))
            self._counted[choice] = total

    def count(self, tokens: int, shown: bool = True) -> None:
        """The chunk just noted, or if nothing was shown the next one, holds this many tokens (more)."""
        if not shown:
            self._held += tokens
        elif tokens >= 0 and len(self.token_counts) + 1 == len(self.token_ns):
            self.token_counts.append(tokens + self._held)
            self._held = 0

    def usage_counts(self) -> tuple[int | None, int | None, int | None]:
        """(prompt, output, cached) tokens by the server's own usage; None where it told nothing usable.

        The output includes the reasoning, in every API that tells both.
        """
        if not self.usage:
            return None, None, None
        usage = decode_or_none(self.usage, Usage) or Usage()
        details = usage.prompt_tokens_details or usage.input_tokens_details
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        prompt, output = _count(usage.prompt_tokens), _count(usage.completion_tokens)
        if prompt is None and output is None:
            prompt, output = _count(usage.input_tokens), _count(usage.output_tokens)
        return prompt, output, _count(cached)

    def server_times(self) -> tuple[float | None, float | None]:
        """(prefill, decode) seconds as llama.cpp measured them itself."""
        timings = decode_or_none(self.timings)
        if not isinstance(timings, dict):
            return None, None
        return _seconds(timings.get("prompt_ms")), _seconds(timings.get("predicted_ms"))


def decode_or_none(raw: msgspec.Raw, kind: Any = Any) -> Any:
    """A frame's optional member, decoded; None when absent or of another shape."""
    try:
        return msgspec.json.decode(raw, type=kind) if raw else None
    except (msgspec.MsgspecError, RecursionError):
        return None


def _count(value: Any) -> int | None:
    """A plausible count: bool, negative, huge and non-integer values are what broken servers send."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST else None


def _seconds(value_ms: Any) -> float | None:
    usable = isinstance(value_ms, (int, float)) and not isinstance(value_ms, bool) and value_ms >= 0
    return value_ms / 1e3 if usable else None
