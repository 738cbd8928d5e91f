"""The hot path: from the reads of a body to the stamps of an answer.

Each read is stamped before it is looked at; all events of one read share the stamp. Most reads of a stream
are one frame that equals the last one except for its text, so such a read is recognised by comparing bytes,
at a fraction of the cost of parsing it. The comparison is exact: it accepts only what the parser would have
read as one more token of the same kind, and everything else takes the parser's way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol as Interface

import msgspec

from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.sse import SseParser

ReadEvent = Callable[[bytes, int, Answer], None]

TAIL_S = 1.0  # after [DONE]: how long to wait for the end that lets the connection be reused
# Bytes that stand for themselves in a JSON string; others (quotes, escapes, UTF-8) are the parser's business.
_PLAIN = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
_NOTHING = b"\0"  # begins no text stream
_HOPELESS = 8  # templates that matched almost nothing: frames here differ in more than their text
_WORTH = 4  # tokens that make a template pay


class Body(Interface):
    """The part of aiohttp.StreamReader that is used."""

    def readany(self) -> Awaitable[bytes]: ...
    def at_eof(self) -> bool: ...


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


async def read_stream(body: Body, read_event: ReadEvent, answer: Answer) -> None:
    """Read until the end, [DONE] or an in-band error."""
    parser, template = SseParser(), Template()
    read_any, now, add_token = body.readany, time.perf_counter_ns, answer.token_ns.append
    before, after = template.before, template.after
    while read := await read_any():
        at_ns = now()
        if (
            read.startswith(before)
            and read.endswith(after)
            and len(read) > len(before) + len(after)
            and not read[len(before) : -len(after)].translate(None, _PLAIN)
        ):
            add_token(at_ns)
            continue
        _parse(read, at_ns, parser, template, read_event, answer)
        before, after = template.before, template.after
        if answer.done or answer.error is not None:
            break
    else:
        _read_rest(parser, read_event, answer)
    if answer.done and not body.at_eof():
        await _read_tail(body)


def _parse(
    read: bytes, at_ns: int, parser: SseParser, template: Template, read_event: ReadEvent, answer: Answer
) -> None:
    """Take in any read, and learn from one that was a single token and nothing more."""
    was_idle, known, tokens = parser.idle, answer.beside_tokens(), len(answer.token_ns)
    events = parser.feed(read)
    for event in events:
        read_event(event, at_ns, answer)
    if not parser.idle:
        template.forget()
        return
    one_token = len(events) == 1 and len(answer.token_ns) == tokens + 1
    if was_idle and one_token and answer.beside_tokens() == known:
        template.learn(read, answer.text, tokens)


def _read_rest(parser: SseParser, read_event: ReadEvent, answer: Answer) -> None:
    """Events that the end of the stream completes; half a frame is a truncated stream, not a bad one."""
    at_ns = time.perf_counter_ns()
    try:
        for event in parser.close():
            read_event(event, at_ns, answer)
    except msgspec.MsgspecError:
        return


async def _read_tail(body: Body) -> None:
    """The end of a body that is complete; when it does not come, the connection is closed, not reused."""
    try:
        await asyncio.wait_for(body.readany(), TAIL_S)
    except asyncio.TimeoutError:
        return
