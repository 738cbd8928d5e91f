"""Stamps of two ends compared, from levels small enough for the head; and one real level."""

from __future__ import annotations

import pytest

from perfdoctor.calibration import conclude
from perfdoctor.clock import Clock
from perfdoctor.loadgen.calibrate import _level
from perfdoctor.loadgen.calibrate._level import Sent, Told, compare
from perfdoctor.model import CalibrationLevel, ClientFacts, RequestRecord

MS = 1_000_000
CLOCK = Clock(zero_ns=0)
QUIET = ClientFacts(cpu_share=0.1, read_lag_p99_s=0.0001, send_late_p99_s=0.0, runq_wait_share=0.0)


def stream(lag_ms: float, count: int = 100, lost: int = 0, pace: float = 50.0) -> tuple[RequestRecord, Sent]:
    """An event each 20 ms from 20 ms on, or at another pace, stamped `lag_ms` after it was sent."""
    sent_ns = [round(1e9 / pace) * (i + 1) for i in range(count)]
    at_s = tuple(stamp / 1e9 + lag_ms / 1e3 for stamp in sent_ns[: count - lost])
    record = RequestRecord(
        id=1,
        phase="steady",
        due_s=0.0,
        sent_s=0.0,
        first_token_s=at_s[0],
        last_token_s=at_s[-1],
        end_s=at_s[-1],
        token_at_s=at_s,
        output_tokens=len(at_s),
        token_source="usage",
    )
    return record, Sent(sent_ns, sent_ns)


def level(lag_ms: float = 0.1, late_ms: int = 0, lost: int = 0, pace: float = 50.0) -> CalibrationLevel:
    record, sent = stream(lag_ms, lost=lost, pace=pace)
    late = Sent([stamp - late_ms * MS for stamp in sent.due_ns], sent.sent_ns)
    return compare(1, 50.0, [record], Told({1: late}), CLOCK, QUIET)


def test_lag_is_from_the_servers_write_to_our_stamp():
    """All events 2 ms late: the first token too, and the pace not at all."""
    found = level(lag_ms=2)

    assert (100, 0, "none") == (found.events, found.lost, found.limit)
    assert 0.002 == pytest.approx(found.lag_p99_s) == found.ttft_error_p99_s
    assert 0.0 == pytest.approx(found.tpot_error_p99_s, abs=1e-9)


@pytest.mark.parametrize(("lag_ms", "limit"), [(4.99, "none"), (5.01, "client")])
def test_the_limit_of_a_level(lag_ms, limit):
    """5 ms at p99 still counts as measured rightly."""
    assert limit == level(lag_ms).limit


def test_what_is_in_no_record_is_lost():
    """One event of a hundred is missing here: the level was not measured rightly, however small the lag."""
    found = level(lost=1)

    assert (1, "client") == (found.lost, found.limit)


def test_a_late_server_is_no_fault_of_the_client():
    """Behind its own pace by 9 ms: more load would tell nothing of the client."""
    found = level(lag_ms=20, late_ms=9)

    assert ("server", pytest.approx(0.009)) == (found.limit, found.server_late_p99_s)
    assert "none" == level(lag_ms=1, late_ms=9).limit  # late, and no harm done


def test_a_load_that_was_not_sent_is_no_ceiling():
    """The server was asked for 50 a second and sent 47; of 48 the level stands."""
    slow, enough = level(pace=47.0), level(pace=48.0)

    assert ("server", "none") == (slow.limit, enough.limit)
    assert 47.0 == pytest.approx(slow.offered_per_s, rel=1e-3)


def test_rates_are_of_the_time_in_which_all_streams_were_open():
    """One from 0 to 10 s, one from 5 to 15 s, an event a second each: two a second, in 5 to 10 s."""
    sent = [[float(at) for at in range(11)], [float(at) for at in range(5, 16)]]

    assert (2.0, 2.0) == _level._rates(sent, sent, paced=True)
    assert (None, None) == _level._rates([[0.0, 1.0], [2.0, 3.0]], [[0.0, 1.0], [2.0, 3.0]], paced=True)


def test_a_rate_without_a_pace_is_of_all_its_time():
    """Two streams, one after the other: three events after the first instant, in three seconds."""
    sent = [[0.0, 1.0], [2.0, 3.0]]

    assert (1.0, 1.0) == _level._rates(sent, sent, paced=False)


def test_an_unpaced_level_is_the_limit_of_who_is_busier():
    """Its lag lies in buffers, and its rate is the most that was seen."""
    record, sent = stream(900)

    found = compare(1, None, [record], Told({1: sent}, cpu_share=0.9), CLOCK, QUIET)

    assert ("server", None) == (found.limit, found.server_late_p99_s)
    assert found.events_per_s == conclude([level(), found], 2, "raw").peak_events_per_s
    assert "not_reached" == conclude([level(), found], 2, "raw").limit


def test_the_ceiling_is_the_last_level_that_was_right():
    """And the summary says what stopped the next one."""
    good, bad = level(1), level(8)

    found = conclude([good, bad], 2, "raw")

    assert (1, good.lag_p99_s, "client") == (found.ceiling_streams, found.error_s, found.limit)
    assert "late at p99" in found.summary
    assert "not_reached" == conclude([good], 2, "raw").limit
    assert conclude([bad], 2, "raw").ceiling_streams is None


@pytest.mark.server
def test_a_real_level_is_measured():
    """Eight streams over loopback: every event is found again, and the stamps lie behind the server's."""
    found = _level.drive(8, 50.0, 25)

    assert (200, 0) == (found.events, found.lost)
    assert found.lag_p50_s is not None and 0 < found.lag_p50_s < 0.05
    assert 8 * 50 * 0.4 < (found.events_per_s or 0) < 8 * 50 * 1.1
