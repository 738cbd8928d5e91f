"""The server's own counters over the same time."""

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


def test_a_server_without_counters_has_no_view():
    """Failed readings and other probes' are none."""
    assert view() is None
    assert view(Sample(at_s=9, probe="engine", status="absent"), Sample(at_s=9, probe="cpu")) is None
    assert summary([], samples=[reading(1, requests=1)]).server is None
