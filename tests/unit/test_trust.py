"""The client's own health decides before anything is said about the server."""

from __future__ import annotations

import pytest

from perfdoctor import trust
from perfdoctor.model import Arrivals, ClientFacts, RequestRecord


def answers(n: int = 100, **others: int) -> list[RequestRecord]:
    """Requests of one second each, half of it before the first token; `others` by outcome come first."""
    outcomes = [outcome for outcome, times in others.items() for _ in range(times)]
    return [
        RequestRecord(
            id=i,
            phase="steady",
            due_s=0.0,
            sent_s=None if outcome == "not_sent" else 0.0,
            first_token_s=0.5,
            last_token_s=1.0,
            outcome=outcome,
            censored=outcome in ("cancelled", "not_sent"),
        )
        for i, outcome in enumerate([*outcomes, *["ok"] * (n - len(outcomes))])
    ]


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (ClientFacts(cpu_share=0.79), "valid"),
        (ClientFacts(cpu_share=0.80), "invalid"),
        (ClientFacts(runq_wait_share=0.24), "valid"),
        (ClientFacts(runq_wait_share=0.25), "invalid"),
        (ClientFacts(loop_lag_p99_s=0.049), "valid"),
        (ClientFacts(loop_lag_p99_s=0.050), "degraded"),
        (ClientFacts(loop_lag_p99_s=0.200), "invalid"),
        (ClientFacts(read_lag_p99_s=0.049), "valid"),
        (ClientFacts(read_lag_p99_s=0.050), "degraded"),
        (ClientFacts(read_lag_p99_s=0.199), "degraded"),
        (ClientFacts(read_lag_p99_s=0.200), "invalid"),
        (ClientFacts(read_lag_p99_s=0.049, loop_lag_p99_s=0.2), "valid"),
        (ClientFacts(send_late_p99_s=0.099), "valid"),
        (ClientFacts(send_late_p99_s=0.100), "degraded"),
        (ClientFacts(send_late_p99_s=0.200), "invalid"),
        (ClientFacts(gc_pause_max_s=0.049), "valid"),
        (ClientFacts(gc_pause_max_s=0.050), "degraded"),
        (ClientFacts(gc_pause_max_s=9.0), "degraded"),
        (ClientFacts(fds_open=899, fds_limit=1000), "valid"),
        (ClientFacts(fds_open=900, fds_limit=1000), "degraded"),
        (ClientFacts(fds_open=900), "valid"),
        (ClientFacts(ports_used=899, ports_limit=1000), "valid"),
        (ClientFacts(ports_used=900, ports_limit=1000), "degraded"),
        (ClientFacts(ports_used=1000, ports_limit=1000), "degraded"),
        (ClientFacts(), "valid"),
    ],
    ids=str,
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
    verdict = trust.judge(ClientFacts(), answers(http_500=failed))

    assert expected == verdict.status
    assert all("http_500" in reason for reason in verdict.reasons)


@pytest.mark.parametrize("used", [{"fds_open": 1000, "fds_limit": 1000}, {"ports_used": 9, "ports_limit": 9}])
def test_exhausted_and_connects_failed(used):
    """Two failed connects of a hundred requests: it was the client that had nothing to connect with."""
    assert "invalid" == trust.judge(ClientFacts(**used), answers(connect=2)).status


@pytest.mark.parametrize(("lag_s", "expected"), [(0.0099, "valid"), (0.0101, "degraded")])
def test_lag_is_judged_against_the_first_token_too(lag_s: float, expected: str):
    """A fifth of a TTFT of 50 ms, though the request takes a second."""
    measured = trust.Measured(e2e_p50_s=1.0, ttft_p50_s=0.05, total=100)

    assert expected == trust.weigh(ClientFacts(read_lag_p99_s=lag_s), measured).status


@pytest.mark.parametrize(("pause_s", "expected"), [(0.0009, "valid"), (0.0010, "degraded")])
def test_a_pause_too_short_to_tell(pause_s: float, expected: str):
    """Below a millisecond it is named for no request, however short that was."""
    measured = trust.Measured(e2e_p50_s=0.002, total=100)

    assert expected == trust.weigh(ClientFacts(gc_pause_max_s=pause_s), measured).status


@pytest.mark.parametrize(("cut_off", "expected"), [(0, "valid"), (1, "degraded"), (99, "degraded")])
def test_requests_that_the_end_cut_off(cut_off: int, expected: str):
    """The slowest are missing from the percentiles; that is no failure of the server."""
    verdict = trust.judge(ClientFacts(), answers(cancelled=cut_off))

    assert expected == verdict.status
    assert not any("failed" in reason for reason in verdict.reasons)


def test_requests_never_sent_are_no_failures():
    """The check of the arrivals tells about them."""
    assert "valid" == trust.judge(ClientFacts(), answers(not_sent=60)).status


@pytest.mark.parametrize(
    ("status", "expected"), [("as_asked", "valid"), ("unknown", "valid"), ("deviates", "degraded")]
)
def test_arrivals_that_deviate(status, expected: str):
    """The numbers are right for another load than the one asked for."""
    arrivals = Arrivals(process="poisson", status=status, reason="46 requests/s left, 50 were asked for")

    verdict = trust.judge(ClientFacts(), answers(), arrivals)

    assert expected == verdict.status
    assert all("46 requests/s" in reason for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (ClientFacts(), None),
        (ClientFacts(loop_lag_p99_s=0.002), 0.003),
        (ClientFacts(loop_lag_p99_s=0.002, read_lag_p99_s=0.0005), 0.0005),
    ],
)
def test_the_error_is_the_read_lag(client: ClientFacts, expected: float | None):
    """Else the lag of the loop's timers and their millisecond; else nothing is known."""
    error_s = trust.judge(client, answers()).error_s

    assert expected == (error_s and pytest.approx(error_s))
