"""The server's own counters over the same time."""

import pytest
from summary_cases import request, summary

from perfdoctor.model import Sample

RECORDS = [request(10, 11, 12), request(12, 13, 20)]


def reading(at_s, **values):
    return Sample(at_s=at_s, probe="engine", values=values)


def view(*samples):
    return summary(RECORDS, samples=samples).server


def test_means_are_differences_of_two_readings():
    """100 requests before the load were slow; the two of the load took 1 s to the first token on average."""
    before = reading(9.5, requests=100, ttft_sum_s=900, ttft_count=100, output_tokens=5000)
    after = reading(20.5, requests=102, ttft_sum_s=902, ttft_count=102, output_tokens=5004)
    found = view(before, reading(15, requests=101), after)

    assert (2, 1.0, 4) == (found.requests, found.ttft_mean_s, found.output_tokens)
    assert found.e2e_mean_s is None and found.queue_mean_s is None and found.missing is None


def test_the_readings_nearest_to_the_load_are_taken():
    """Older ones hold what others asked; later ones too."""
    samples = [reading(1, requests=0), reading(9, requests=50), reading(20.2, requests=52)]

    assert 2 == view(*samples, reading(60, requests=90)).requests


def test_one_reading_is_no_difference():
    """Totals since the server's start are never shown."""
    found = view(reading(15, requests=100, ttft_sum_s=900, ttft_count=100))

    assert found.requests is None and found.ttft_mean_s is None
    assert "only once" in found.missing


def test_counters_that_were_set_back_give_nothing():
    """It was restarted in between, so no difference means anything."""
    found = view(reading(9, requests=100, ttft_count=100), reading(21, requests=2, ttft_count=2))
    totals = view(reading(9, output_tokens=100.0), reading(21, output_tokens=2.0))

    assert "set back" in found.missing and found.requests is None
    assert "set back" in totals.missing


def test_no_request_in_between_has_no_mean():
    """0 s over 0 requests is nothing, not 0."""
    same = {"ttft_sum_s": 5.0, "ttft_count": 5}

    assert view(reading(9, **same), reading(21, **same)).ttft_mean_s is None


def test_a_time_longer_than_the_run_is_left_out():
    """776,538 s of latency while the run took 21: a counter or a clock went wrong."""
    before = reading(9, e2e_sum_s=0.0, e2e_count=0, ttft_sum_s=0.0, ttft_count=0)
    found = view(before, reading(21, e2e_sum_s=1_553_076.0, e2e_count=2, ttft_sum_s=42.0, ttft_count=2))

    assert found.e2e_mean_s is None and "e2e was longer than the run" in found.doubts[0]
    assert 21.0 == found.ttft_mean_s and 1 == len(found.doubts)


@pytest.mark.parametrize(("requests", "doubted"), [(2, False), (4, False), (5, True)])
def test_requests_of_others_are_told(requests, doubted):
    """Two ended here between the readings."""
    found = view(reading(9, requests=0), reading(21, requests=requests))

    assert 2 == found.requests_here
    assert doubted == (f"it finished {requests} requests, 2 of them from here" in found.doubts)


@pytest.mark.parametrize(("tokens", "doubted"), [(4, False), (54, False), (55, True)])
def test_tokens_that_did_not_arrive_are_told(tokens, doubted):
    """Four arrived; counting chunks as tokens would show here."""
    found = view(reading(9, output_tokens=0), reading(21, output_tokens=tokens))

    assert 4 == found.output_tokens_here
    assert doubted == (f"it counted {tokens} tokens, here arrived 4" in found.doubts)


def test_what_the_warm_up_asked_is_no_ones_elses():
    """The reading before the load stands before its warm-up too."""
    warm = [request(2, 3, 4, phase="warmup")] * 20
    found = summary([*warm, *RECORDS], samples=[reading(1, requests=0), reading(21, requests=22)]).server

    assert (22, 22, ()) == (found.requests, found.requests_here, found.doubts)


def test_a_server_without_counters_has_no_view():
    """Failed readings and other probes' are none."""
    assert view() is None
    assert view(Sample(at_s=9, probe="engine", status="absent"), Sample(at_s=9, probe="cpu")) is None
    assert summary([], samples=[reading(1, requests=1)]).server is None
