"""The client's own health decides before anything is said about the server."""

from __future__ import annotations

import pytest

from perfdoctor import trust
from perfdoctor.model import ClientFacts, RequestRecord


def answers(n: int = 100, failed: int = 0) -> list[RequestRecord]:
    """Requests of one second each, the first `failed` of them refused."""
    return [
        RequestRecord(
            id=i,
            phase="steady",
            due_s=0.0,
            sent_s=0.0,
            first_token_s=0.5,
            last_token_s=1.0,
            outcome="http_500" if i < failed else "ok",
        )
        for i in range(n)
    ]


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (ClientFacts(cpu_share=0.79), "valid"),
        (ClientFacts(cpu_share=0.80), "invalid"),
        (ClientFacts(loop_lag_p99_s=0.049), "valid"),
        (ClientFacts(loop_lag_p99_s=0.050), "degraded"),
        (ClientFacts(loop_lag_p99_s=0.200), "invalid"),
        (ClientFacts(send_late_p99_s=0.099), "valid"),
        (ClientFacts(send_late_p99_s=0.100), "degraded"),
        (ClientFacts(runq_wait_share=0.24), "valid"),
        (ClientFacts(runq_wait_share=0.25), "invalid"),
        (ClientFacts(), "valid"),
    ],
)
def test_each_limit_from_both_sides(client: ClientFacts, expected: str):
    """Lag is judged against the median request of one second; unknown values accuse nobody."""
    verdict = trust.judge(client, answers())

    assert expected == verdict.status
    assert (expected == "valid") == (not verdict.reasons)


@pytest.mark.parametrize(
    ("failed", "expected"), [(0, "valid"), (1, "degraded"), (49, "degraded"), (50, "invalid")]
)
def test_failures_lower_trust(failed: int, expected: str):
    """From one in a hundred the reader is told; from half on nothing is concluded."""
    verdict = trust.judge(ClientFacts(), answers(failed=failed))

    assert expected == verdict.status
    assert all("http_500" in reason for reason in verdict.reasons)
