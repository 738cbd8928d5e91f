"""Asks a server the same questions greedily, and says where answers differ.

Tokens are told apart as the stream brings them, a chunk for a token where the server does so; where it
bundles several, the index is that of the chunk.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import msgspec

from perfdoctor import preflight
from perfdoctor.errors import Refused, ServerDied, TargetError
from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols._protocol import Ask, without_refused
from perfdoctor.loadgen.protocols.chat import PROTOCOL
from perfdoctor.loadgen.sse import SseParser
from perfdoctor.loadgen.urls import completion_url
from perfdoctor.model import Load, Outputs, Target

TOKENS = 32  # of an answer, or fewer where the load asks for fewer
AT_ONCE = 4
# Some servers announce that they keep a connection open and close it after a stream (llama.cpp).
HEADERS = {"Content-Type": "application/json", "Accept": PROTOCOL.accept, "Connection": "close"}
QUESTIONS = (
    "What is the capital of Norway?",
    "Count from one to twenty in words, separated by commas.",
    "Write a Python function that returns the sum of the squares of a list of numbers, with a docstring.",
    "Übersetze ins Englische: Der Zug nach Zürich fährt um 7:45 Uhr von Gleis 3 ab.",
    "17 * 23 = ? Show each step of the calculation.",
    "A farmer has a fox, a goose and a bag of beans, and a boat that carries one of them. " * 6
    + "How does he cross the river?",
)

Answers = tuple[tuple[str, ...], ...]  # chunks of text, by question


@dataclass(frozen=True, slots=True)
class Asked:
    """`apart`: one question after the other; `together`: several at once. Seconds of the very first answer,
    and of the same question again."""

    apart: Answers
    together: Answers
    tokens: int  # asked of each
    first_s: float
    next_s: float


def ask_all(target: Target, secret: str | None, load: Load) -> Asked:
    """Raises a TargetError where the server does not answer."""
    url = completion_url(target.endpoint or "", PROTOCOL.path)
    asked = load.prompts.output_tokens
    tokens = min(TOKENS, asked) if isinstance(asked, int) else TOKENS
    key = {"Authorization": f"Bearer {secret}"} if secret else {}
    headers = {**HEADERS, **key, **target.headers}
    with httpx.Client(
        headers=headers,
        timeout=load.timeout_s,
        trust_env=False,
        transport=preflight.transport(target.wire, url),
    ) as client:

        def ask(question: str) -> tuple[str, ...]:
            return _ask(client, url, target, question, tokens)

        began_s = time.perf_counter()
        ask(QUESTIONS[0])
        again_s = time.perf_counter()
        first = ask(QUESTIONS[0])
        done_s = time.perf_counter()
        apart = (first, *map(ask, QUESTIONS[1:]))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            together = tuple(pool.map(ask, QUESTIONS))
    return Asked(apart, together, tokens, again_s - began_s, done_s - again_s)


def _ask(client: httpx.Client, url: str, target: Target, question: str, tokens: int) -> tuple[str, ...]:
    what = Ask(
        target.served_name or target.model or "default",
        (("user", question),),
        tokens,
        temperature=0.0,
        extra=target.extra_body,
    )
    try:
        return _read(client, url, what)
    except httpx.TransportError as error:
        raise ServerDied(
            f"the server gave no answer to a question: {type(error).__name__}",
            "It ended, or takes longer than the limit of one request.",
            "look at its log; a longer limit: --timeout 10m",
        ) from error


def _read(client: httpx.Client, url: str, what: Ask) -> tuple[str, ...]:
    answer, parser = Answer(), SseParser()
    answer.texts, answer.thoughts = [], []
    with client.stream("POST", url, content=PROTOCOL.request(what, "").body) as response:
        if response.status_code != 200:
            said = response.read().decode("utf-8", "replace")
            less = without_refused(what, response.status_code, said)
            if less is None:
                raise _refused(response.status_code, said)
            return _read(client, url, less)
        for read in response.iter_raw():
            _take(parser.feed(read), answer)
        _take(parser.close(), answer)
    if answer.error:
        raise _refused(200, answer.error)
    return (*answer.thoughts, *answer.texts)


def _take(events: Sequence[bytes], answer: Answer) -> None:
    for event in events:
        try:
            PROTOCOL.read(event, time.perf_counter_ns(), answer)
        except msgspec.DecodeError as error:
            raise _refused(200, f"an event is no frame of a chat: {error}") from error


def _refused(status: int, said: str) -> TargetError:
    return Refused(
        f"the server answered a question with {status}: {said.strip()[:200]}",
        "It does not speak chat completions as other servers do, or it cannot run the model.",
        "look at its log",
    )


# ------------------------------------------------------------------------------ comparing; pure


def compare(before: Asked, after: Asked) -> Outputs:
    """A question whose answer the before side itself does not repeat says nothing about the fix."""
    unsteady = {i for i, _ in _differing(before.apart, before.together)}
    found = [(i, at) for i, at in _differing(before.apart, after.apart) if i not in unsteady]
    differing = {i for i, _ in found}
    together = [
        i for i, _ in _differing(before.apart, after.together) if i not in unsteady and i not in differing
    ]
    return Outputs(
        prompts=len(before.apart),
        tokens=before.tokens,
        differ=len(found),
        first=min((at for _, at in found), default=None),
        differ_together=len(together),
        unsteady=len(unsteady),
        missing="the before side repeats none of its own answers"
        if len(unsteady) == len(before.apart)
        else None,
    )


def _differing(one: Answers, other: Answers) -> list[tuple[int, int]]:
    """(question, index of the first chunk that is not the same) of each that differs."""
    pairs = enumerate(zip(one, other, strict=True))
    return [(i, at) for i, (a, b) in pairs if (at := first_difference(a, b)) is not None]


def first_difference(one: Sequence[str], other: Sequence[str]) -> int | None:
    """Index of the chunk of `one` at which the texts part, however the other is cut into chunks."""
    whole, text = "".join(other), "".join(one)
    if whole == text:
        return None
    end = 0
    for index, piece in enumerate(one):
        if whole[end : end + len(piece)] != piece:
            return index
        end += len(piece)
    return len(one)
