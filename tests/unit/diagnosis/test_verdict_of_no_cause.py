"""What is said when no rule hits: healthy only when shown, else what is known and what is not."""

from __future__ import annotations

import msgspec
import pytest

from perfdoctor.diagnosis.measure import measure_all
from perfdoctor.diagnosis.observations import Observations
from perfdoctor.diagnosis.verdict import Grounds, decide
from perfdoctor.model import Ledger, LedgerRow, Roof, RuleState, Trust, Verdict
from tests.factories import facts

NOTHING = measure_all(Observations(facts(), "complete", [], []))
ROWS = (LedgerRow(row="decode", seconds=3.0, share=0.75), LedgerRow(row="prefill", seconds=1.0, share=0.25))


def verdict(*, unknown: tuple[str, str] | None = None, loads_seen: bool = False, **values: float) -> Verdict:
    """Of a trusted run in which no rule hit; `unknown` is (rule, class) of one that could not be judged."""
    table = dict(NOTHING)
    for name, value in values.items():
        dotted = name.replace("__", ".")
        source = "host CPUs" if dotted.startswith("server.saturation") else None
        table[dotted] = msgspec.structs.replace(table[dotted], value=value, missing=None, source=source)
    states = [RuleState(rule="serial-server", cls="scheduling", status="clear")]
    if unknown:
        states.append(RuleState(rule=unknown[0], cls=unknown[1], status="unknown"))
    return decide(
        Grounds(Trust(status="valid"), [], states, table, Roof(), Ledger(mean=ROWS), "", loads_seen)
    )


@pytest.mark.parametrize(
    ("full", "waits", "expected"),
    [
        (0.90, 0.09, "healthy"),
        (0.89, 0.09, "insufficient_evidence"),
        (0.90, 0.10, "insufficient_evidence"),
    ],
)
def test_a_full_resource_is_healthy_unless_others_fill_it(full: float, waits: float, expected: str) -> None:
    """From 0.9 the server uses all there is; from 0.1 in the run queue it is kept from it."""
    found = verdict(server__saturation__share=full, cpu__serving__runq_wait__share=waits)

    assert expected == found.status
    assert ("host CPUs are 90 % in use" in found.summary) == (expected == "healthy")


def test_a_full_resource_is_not_the_limit_while_throughput_grows() -> None:
    """Threads that spin fill the CPUs; four users who get three times the tokens show that there is room."""
    found = verdict(server__saturation__share=1.0, throughput__scaling=3.0)

    assert "healthy" == found.status
    assert "in use" not in found.summary


def test_a_full_resource_is_healthy_where_waiting_was_not_seen() -> None:
    """A missing number accuses nobody."""
    assert "healthy" == verdict(server__saturation__share=0.95).status


@pytest.mark.parametrize(
    ("name", "below", "at", "word"),
    [
        ("gil__idle__share", 0.299, 0.3, "lock"),
    ],
)
def test_a_trouble_that_no_rule_judges_is_told_and_not_healthy(
    name: str, below: float, at: float, word: str
) -> None:
    """Throughput that grew with the users does not make a starved server well."""
    well, ill = (
        verdict(throughput__scaling=2.0, **{name: below}),
        verdict(throughput__scaling=2.0, **{name: at}),
    )

    assert ("healthy", "insufficient_evidence") == (well.status, ill.status)
    assert word in ill.summary
    assert word not in well.summary


def test_loading_that_nobody_watched_is_not_held_against_a_running_server() -> None:
    """An endpoint ran already, so its load rule is unknown without being a gap."""
    unknown = ("slow-storage-load", "disk-io")

    assert "could be judged" not in verdict(unknown=unknown).summary
    assert "slow-storage-load" in verdict(unknown=unknown, loads_seen=True).summary
    assert "launch-bound-decode" in verdict(unknown=("launch-bound-decode", "launch-overhead")).summary


def test_an_unresolved_run_still_says_where_the_time_went() -> None:
    """The two largest rows of the ledger."""
    assert verdict().summary.endswith("Most of a request is decode 75 %, prefill 25 %.")
