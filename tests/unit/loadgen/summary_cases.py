"""Hand-made requests whose sums fit in the head, and their summary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perfdoctor.loadgen.summary import summarise
from perfdoctor.model import ClientFacts, Load, LoadSummary, RequestRecord, RunFacts, Sample, Scenario


def request(
    sent_s: float | None, *tokens_s: float, end_s: float | None = None, output: int | None = None, **more: Any
) -> RequestRecord:
    """Sent at `sent_s`, a token at each further instant, over with the last."""
    first, last = (tokens_s[0], tokens_s[-1]) if tokens_s else (None, None)
    fields = {
        "id": 1,
        "phase": "steady",
        "due_s": sent_s,
        "sent_s": sent_s,
        "first_token_s": first,
        "first_answer_s": first,
        "last_token_s": last,
        "end_s": end_s if end_s is not None else last,
        "token_at_s": tokens_s,
        "output_tokens": len(tokens_s) if output is None else output,
        "token_source": "usage",
        "finish_reason": "stop",
        "prompt_tokens": 10,
    }
    return RequestRecord(**{**fields, **more})


def failed(sent_s: float, end_s: float, outcome: str = "http_429", **more: Any) -> RequestRecord:
    """A request that ended in a failure without a token."""
    unknown = {"output_tokens": None, "token_source": None, "finish_reason": None, "prompt_tokens": None}
    return request(sent_s, end_s=end_s, **{"outcome": outcome, "error": "no"} | unknown | more)


def unsent(due_s: float) -> RequestRecord:
    """Due, and never sent before the load ended."""
    return RequestRecord(id=1, phase="steady", due_s=due_s, outcome="not_sent", censored=True)


def summary(
    records: Iterable[RequestRecord],
    users: int = 1,
    state: str = "complete",
    samples: Iterable[Sample] = (),
    slo: str | None = None,
    client: ClientFacts | None = None,
    **load: Any,
) -> LoadSummary:
    """Of a closed loop, unless `load` says otherwise."""
    scenario = Scenario(load=Load(concurrency=users, **load))
    facts = RunFacts(run="r", scenario=scenario, client=client or ClientFacts())
    return summarise(facts, state, tuple(records), samples, slo)
