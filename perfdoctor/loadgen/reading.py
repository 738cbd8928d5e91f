"""The hot path: from the reads of a body to the stamps of an answer.

All events of one read share its stamp. Most reads of a stream
are one frame that equals the last one except for its text, so such a read is recognised by comparing bytes,
at a fraction of the cost of parsing it. The comparison is exact: it accepts only what the parser would have
read as one more token of the same kind, and everything else takes the parser's way.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.ending import evidence
from perfdoctor.loadgen.sse import SseParser

ReadEvent = Callable[[bytes, int, Answer], None]

# Bytes that stand for themselves in a JSON string; others (quotes, escapes, UTF-8) are the parser's business.
_PLAIN = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
_NOTHING = b"\0"  # begins no text stream
_HOPELESS = 8  # templates that matched almost nothing: frames here differ in more than their text
_WORTH = 4  # tokens that make a template pay


class Unreadable(ValueError):
    """An event is no frame of the protocol."""


class Template:
    """What surrounds the text in a frame that is one token. `before` matches nothing until one is learnt."""

    __slots__ = ("_failures", "_tokens", "after", "before")

    def __init__(self) -> None:
        self.before = self.after = _NOTHING
        self._tokens = -_WORTH
        self._failures = 0

    def learn(self, read: bytes, text: object, tokens: int) -> None:
        """Cut a read that was exactly one token at its text, if the text is plain and occurs once."""
        if self._failures >= _HOPELESS or not isinstance(text, str) or b"\\" in read:
            return
        raw = text.encode("utf-8", "replace")
        # no escapes in the frame: the text stands there as it is; once: what stands there is the text
        if raw.translate(None, _PLAIN) or read.count(b'"' + raw + b'"') != 1:
            return
        self._failures += tokens - self._tokens < _WORTH
        self._tokens = tokens
        before, _, after = read.partition(b'"' + raw + b'"')
        self.before, self.after = before + b'"', b'"' + after

    def forget(self) -> None:
        self.before = _NOTHING


class StreamReader:
    """Reads one event stream into `answer`, read by read."""

    __slots__ = (
        "_add_token", "_after", "_answer", "_before", "_last_ns", "_parser", "_read_event", "_template",
        "bytes", "reads",
    )  # fmt: skip

    def __init__(self, read_event: ReadEvent, answer: Answer) -> None:
        self._read_event, self._answer = read_event, answer
        self._add_token = answer.token_ns.append
        self._parser, self._template = SseParser(), Template()
        self._before, self._after = self._template.before, self._template.after
        self.bytes = self.reads = 0  # pieces that share a stamp are one read
        self._last_ns = 0

    def feed(self, read: bytes, at_ns: int) -> bool:
        """Whether the stream said that it was over: [DONE] or an in-band error."""
        self.bytes += len(read)
        if at_ns != self._last_ns:
            self._last_ns = at_ns
            self.reads += 1
        before, after = self._before, self._after
        if (
            read.startswith(before)
            and read.endswith(after)
            and len(read) > len(before) + len(after)
            and not read[len(before) : -len(after)].translate(None, _PLAIN)
        ):
            self._add_token(at_ns)
            return False
        self._parse(read, at_ns)
        self._before, self._after = self._template.before, self._template.after
        return self._answer.done or self._answer.error is not None

    def close(self) -> None:
        """Events that the end of the bytes completes; half a frame is a truncated stream, not a bad one."""
        at_ns = time.perf_counter_ns()
        try:
            for event in self._parser.close():
                self._read_event(event, at_ns, self._answer)
        except (msgspec.MsgspecError, RecursionError):
            return

    def _parse(self, read: bytes, at_ns: int) -> None:
        """Take in any read, and learn from one that was a single token and nothing more."""
        parser, answer = self._parser, self._answer
        was_idle, known, tokens = parser.idle, answer.beside_tokens(), len(answer.token_ns)
        events = parser.feed(read)
        try:
            for event in events:
                self._read_event(event, at_ns, answer)
                if answer.done:  # what a read holds beyond [DONE] is of no more weight than a later read
                    break
        except (msgspec.MsgspecError, RecursionError) as error:  # the latter: a thousand nested lists
            raise Unreadable(f"{error}: {evidence(event)}") from error
        if not parser.idle:
            self._template.forget()
            return
        one_token = len(events) == 1 and len(answer.token_ns) == tokens + 1
        wanted = answer.texts is not None  # then every text is looked at, and the template would skip it
        if was_idle and one_token and not wanted and answer.beside_tokens() == known:
            self._template.learn(read, answer.text, tokens)
