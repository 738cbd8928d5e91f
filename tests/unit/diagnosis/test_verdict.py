"""The next command is always one that exists and that moves the question on."""

from __future__ import annotations

import pytest

from perfdoctor.diagnosis.verdict import next_command
from perfdoctor.model import Finding, FixOffer, Load, RunFacts, Scenario, Target, TargetFacts, Verdict

LOCAL = RunFacts(
    scenario=Scenario(target=Target(model="my model"), load=Load(concurrency=4)),
    target=TargetFacts(kind="local"),
)
REMOTE = RunFacts(
    run="a-run",
    scenario=Scenario(target=Target(endpoint="http://h:1", api="completions"), load=Load(concurrency=4)),
    target=TargetFacts(url="http://h:1"),
)
BARE = Finding(rule="serial-server", cls="scheduling", title="t", status="hit")
FIXED = Finding(
    rule="serial-server",
    cls="scheduling",
    title="t",
    status="hit",
    fixes=(FixOffer(id="batch-more-requests", title="t", verdict="confirmed"),),
)


@pytest.mark.parametrize(
    ("facts", "verdict", "findings", "thin", "expected"),
    [
        (LOCAL, Verdict(status="found"), [FIXED], False, "perfdoctor explain batch-more-requests"),
        (LOCAL, Verdict(status="found"), [BARE], False, "perfdoctor explain serial-server"),
        (LOCAL, Verdict(status="healthy"), [], False, "perfdoctor diagnose --model 'my model' -c 8"),
        (
            LOCAL,
            Verdict(status="insufficient_load"),
            [],
            False,
            "perfdoctor diagnose --model 'my model' -c 8",
        ),
        (
            REMOTE,
            Verdict(status="untrusted", cls="client-limited"),
            [],
            False,
            "perfdoctor diagnose --endpoint http://h:1 --api completions -c 2",
        ),
        (REMOTE, Verdict(status="untrusted"), [], False, "perfdoctor report a-run"),
        (REMOTE, Verdict(status="insufficient_evidence"), [], False, "perfdoctor check"),
        (
            REMOTE,
            Verdict(status="insufficient_evidence"),
            [],
            True,
            "perfdoctor diagnose --endpoint http://h:1 --api completions --duration 60s",
        ),
    ],
)
def test_next(facts: RunFacts, verdict: Verdict, findings: list[Finding], thin: bool, expected: str) -> None:
    """One command per state."""
    assert expected == next_command(facts, verdict, findings, thin=thin)
