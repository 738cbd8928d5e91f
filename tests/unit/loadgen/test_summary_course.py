"""How a load went on, in bins."""

from itertools import pairwise

from summary_cases import failed, request, summary, unsent


def test_the_counts_of_the_bins_are_those_of_the_run():
    """Every steady request that was sent is in one bin, every end in one, every token in one."""
    records = [
        request(0, 1, 2),
        request(0, 0.5, 3.9),
        failed(1, 1.5),
        request(2, 3, 4),
        request(3, 3.5, end_s=4.0, outcome="cancelled", censored=True),
        unsent(3.9),
    ]
    result = summary(records, users=2)
    course = result.course

    assert (0, 4, 8) == (course[0].start_s, course[-1].end_s, len(course))
    assert result.requests.total - result.requests.not_sent == sum(part.sent for part in course)
    assert result.requests.ok == sum(part.ok for part in course)
    assert sum(result.requests.failed.values()) == sum(part.failed for part in course)
    assert result.tokens.output == sum(part.output_tokens for part in course)
    assert all(a.end_s == b.start_s for a, b in pairwise(course))


def test_in_flight_is_a_mean_over_the_bin():
    """One request all the time, a second one from 0.5 to 0.75: half of the second bin."""
    course = summary([request(0, 1, 2), request(0.5, 0.75)]).course

    assert [1.0, 1.5, 1.0, 1.0] == [part.in_flight for part in course]


def test_what_the_warm_up_left_open_is_in_flight_but_counted_nowhere():
    """The server still serves it."""
    warm = request(0, 2.25, end_s=3.0, phase="warmup")
    course = summary([warm, request(2, 2.5, 4)]).course

    assert [2.0, 2.0, 1.0, 1.0] == [part.in_flight for part in course]
    assert (1, 1) == (sum(part.sent for part in course), sum(part.ok for part in course))
    assert 3.0 == sum(part.output_tokens for part in course)


def test_times_to_first_token_stand_where_the_token_came():
    """Sent in the first bin, answered in the second; a bin without one has no median."""
    course = summary([request(0, 0.75, 1.5)]).course

    assert [None, 0.75, None] == [part.ttft_p50_s for part in course]


def test_a_short_load_has_no_course():
    """Under two bins of half a second there is nothing to see; a long one has 120 at most."""
    assert () == summary([request(0, 0.9)]).course
    assert 2 == len(summary([request(0, 1.0)]).course)
    assert 120 == len(summary([request(0, 500.0)]).course)
    assert () == summary([]).course == summary([unsent(0.0)]).course
