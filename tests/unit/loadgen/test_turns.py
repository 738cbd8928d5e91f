"""Later turns of a conversation: who sends them, and when they are due."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from perfdoctor.loadgen.budget import Budget
from perfdoctor.loadgen.closed_loop import ClosedLoop
from perfdoctor.loadgen.open_loop import OpenLoop
from perfdoctor.loadgen.prompts._prompt import Prompt
from perfdoctor.loadgen.stage import Share, Stage

SERVICE_S = 0.01


def conversation(name: str, turns: int, pause_s: float = 0.0) -> Prompt:
    """Each turn carries the answers to the turns before it."""

    def turn(number: int, said: str) -> Prompt:
        def follow_up(answer: str) -> Prompt | None:
            return turn(number + 1, f"{said}>{answer}") if number < turns else None

        return Prompt((("user", said),), 8, turn=number, follow_up=follow_up, pause_s=pause_s * (number > 1))

    return turn(1, name)


class Issuer:
    """Answers `a`, `b`, ... after 10 ms each; keeps (due, sent, text) of every request."""

    def __init__(self, turns: int, pause_s: float, outcome: str = "ok") -> None:
        self._turns, self._pause_s, self._outcome = turns, pause_s, outcome
        self._begun = 0
        self.sent: list[tuple[int, int, str]] = []

    def next_prompt(self) -> Prompt:
        self._begun += 1
        return conversation(f"c{self._begun}", self._turns, self._pause_s)

    async def send(self, phase, due_ns, prompt, ready_ns=0):
        self.sent.append((due_ns, time.perf_counter_ns(), prompt.messages[0][1]))
        await asyncio.sleep(SERVICE_S)
        answer = SimpleNamespace(texts=[f"t{prompt.turn}"])
        return SimpleNamespace(outcome=self._outcome, end_ns=time.perf_counter_ns(), answer=answer)

    def skip(self, phase, due_ns):
        raise AssertionError("nothing is left unsent here")


def run(kind: str, turns: int, requests: int, pause_s: float = 0.0, outcome: str = "ok", whole=False):
    """What was sent: by two users, or by a schedule of a conversation every 5 ms."""

    async def inside():
        issuer, start_ns = Issuer(turns, pause_s, outcome), time.perf_counter_ns()
        stage = Stage("steady", 2, requests=requests)
        budget = Budget(stage, Share(), start_ns, asyncio.Event(), lambda _: None, whole)
        if kind == "closed":
            await ClosedLoop(issuer, stage, Share(), budget, start_ns).run()
        else:
            due_ns = [start_ns + n * 5_000_000 for n in range(requests)]
            await OpenLoop(issuer, due_ns, budget, None).run()
        return issuer.sent

    return asyncio.run(inside())


@pytest.mark.parametrize("kind", ["closed", "open"])
def test_a_turn_carries_the_answers_before_it(kind):
    """And is one of the requests that were asked for."""
    sent = run(kind, turns=3, requests=12)

    texts = [text for _, _, text in sent]
    assert 12 == len(texts) == len(set(texts))
    assert {"c1", "c1>t1", "c1>t1>t2"} <= set(texts)


def test_a_user_stays_with_its_conversation():
    """Its turns come one after the other, before it begins another one."""
    sent = run("closed", turns=2, requests=8)

    order = [text for _, _, text in sent]
    assert order.index("c3") > order.index("c1>t1") and order.index("c4") > order.index("c2>t1")


@pytest.mark.parametrize("kind", ["closed", "open"])
def test_a_turn_is_due_when_its_answer_ended_and_the_pause_is_over(kind):
    """Not when the schedule wants something new, and never sent before it is due."""
    pause_s = 0.03
    sent = run(kind, turns=2, requests=16, pause_s=pause_s)

    first = {text: sent_ns for _, sent_ns, text in sent}
    turns = [(due, sent_ns, text) for due, sent_ns, text in sent if ">" in text]
    assert turns
    for due_ns, sent_ns, text in turns:
        after_s = (due_ns - first[text.split(">")[0]]) / 1e9
        assert SERVICE_S + pause_s - 0.002 <= after_s < SERVICE_S + pause_s + 0.05
        assert due_ns <= sent_ns


@pytest.mark.parametrize("kind", ["closed", "open"])
def test_nothing_follows_an_answer_that_failed(kind):
    """The conversation has no answer to go on from."""
    sent = run(kind, turns=3, requests=2, outcome="http_500")

    assert {"c1", "c2"} == {text for _, _, text in sent}


@pytest.mark.parametrize("kind", ["closed", "open"])
def test_whole_conversations(kind):
    """Two of them with three turns each, when the number is one of conversations."""
    sent = run(kind, turns=3, requests=2, whole=True)

    told = sorted(text for _, _, text in sent)
    assert ["c1", "c1>t1", "c1>t1>t2", "c2", "c2>t1", "c2>t1>t2"] == told
