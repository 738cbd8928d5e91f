"""What a reader is told: both sides of every limit."""

import msgspec
import pytest
from summary_cases import failed, request, summary

from perfdoctor.loadgen.summary import summarise
from perfdoctor.model import Phase, RunFacts


def told(records, words, **more):
    return any(words in note for note in summary(records, **more).notes)


@pytest.mark.parametrize(("tokens", "expected"), [(120, False), (121, True)])
def test_tokens_per_chunk(tokens, expected):
    """100 chunks: up to a fifth more tokens are end marks and hidden tags."""
    stamps = [0.01 * n for n in range(1, 101)]

    assert expected == told([request(0, *stamps, output=tokens)], "per chunk on average")


@pytest.mark.parametrize(("apart_s", "expected"), [(0.9e-5, True), (1.1e-5, False)])
def test_chunks_that_arrive_together(apart_s, expected):
    """One read gives them one stamp; one gap in five is enough."""
    stamps = [1.0, 2.0, 3.0, 4.0, 5.0, 5.0 + apart_s]

    assert expected == told([request(0, *stamps)], "arrived together")


@pytest.mark.parametrize(("others", "expected"), [(4, True), (5, False)])
def test_how_many_of_them_do(others, expected):
    """One gap of five, one of six."""
    stamps = [1.0, 1.0, *(2.0 + n for n in range(others))]

    assert expected == told([request(0, *stamps)], "arrived together")


@pytest.mark.parametrize(("came", "expected"), [(8, False), (7, True)])
def test_delivered_against_asked(came, expected):
    """Ten tokens were asked for."""
    stamps = [1.0 + n for n in range(came)]

    assert expected == told([request(0, *stamps, asked_tokens=10)], "as long as asked for")


@pytest.mark.parametrize(("cached", "expected"), [(10, True), (9, False)])
def test_a_prefix_cache(cached, expected):
    """A tenth of 100 prompt tokens."""
    record = request(0, 1, prompt_tokens=100, cached_tokens=cached)

    assert expected == told([record], "prefix cache")


@pytest.mark.parametrize(("different", "expected"), [(9, False), (8, True)])
def test_prompts_that_repeat(different, expected):
    """Nine of ten must be distinct."""
    records = [request(n, n + 1, prompt_hash=str(n % different)) for n in range(10)]

    assert expected == told(records, "of the prompts are distinct")


@pytest.mark.parametrize(("source", "expected"), [("usage", False), ("per_chunk", False), ("chunks", True)])
def test_counted_chunks_are_no_tokens(source, expected):
    """What the server told, in whatever way, needs no word."""
    assert expected == told([request(0, 1, 2, token_source=source)], "chunks were counted instead")


@pytest.mark.parametrize(
    ("half", "later_s", "expected"), [(20, 1.5, True), (20, 1.49, False), (19, 1.5, False)]
)
def test_a_queue_that_grows(half, later_s, expected):
    """TTFT of the second half against the first, 20 requests in each; whatever the order of the log."""
    records = [request(n, n + (1.0 if n < half else later_s)) for n in range(2 * half)]

    assert expected == told(reversed(records), "not in a steady state")


def test_a_load_that_gets_faster():
    """Its first half was still warming up."""
    records = [request(n, n + (2.0 if n < 20 else 1.0)) for n in range(40)]

    assert told(records, "warm-up may have been too short")


def test_scatter_is_no_drift():
    """Halves whose medians are twice apart by chance: their intervals overlap."""
    early, late = [0.1, 1.0] * 10 + [0.1], [0.1, 1.0] * 10 + [1.0]
    records = [request(n, n + ttft) for n, ttft in enumerate(early + late)]

    assert not told(records, "not in a steady state")


@pytest.mark.parametrize(
    "damage",
    [
        {"sent_s": 9.0}, {"end_s": 2.5}, {"token_at_s": (3.0, 2.0)}, {"token_at_s": (0.5, 3.0)},
        {"last_token_s": 1.0}, {"output_tokens": -1}, {"sent_s": -1.0}, {"end_s": 1e300},
        {"first_event_s": 2.5}, {"headers_s": 0.5},
    ],
)  # fmt: skip
def test_a_request_with_impossible_instants_is_left_out(damage):
    """It would give a negative latency, or one longer than the run; the reader is told."""
    good, bad = request(1, 2, 3), msgspec.structs.replace(request(1, 2, 3), **damage)
    phases = (Phase(name="steady", start_s=1.0, end_s=3.0),)
    found = summarise(RunFacts(run="r", phases=phases), "complete", [good, bad])

    assert (1, 1.0, 2.0) == (found.requests.total, found.ttft.max, found.e2e.max)
    assert any("1 requests are left out" in note for note in found.notes)


def test_a_rounded_instant_is_not_out_of_order():
    """Sums of binary fractions differ in their last digits."""
    record = request(1.2, 12.3, 13.3, end_s=13.3 - 1e-9)

    assert 1 == summary([record]).requests.total


def test_a_request_of_a_running_phase_has_no_latest_end():
    """The phases that are over say nothing of it."""
    phases = (Phase(name="baseline", start_s=0.0, end_s=1.0),)
    found = summarise(RunFacts(run="r", phases=phases), "interrupted", [request(500, 501, 502)])

    assert 1 == found.requests.total


def rounds(users, apart_s=0.0, **more):
    """Three rounds of 10 s, the requests of each `apart_s` apart."""
    sent = [10.0 * turn + apart_s * user for turn in range(3) for user in range(users)]
    return [request(s, s + 5, s + 9, **{"finish_reason": "length"} | more) for s in sent]


def test_users_that_send_together():
    """Equal lengths keep four users of a closed loop in step; three are not yet a burst."""
    assert told(rounds(4), "send together", users=4)
    assert not told(rounds(3), "send together", users=3)
    assert not told(rounds(4, apart_s=1.0), "send together", users=4)
    assert not told(rounds(4, finish_reason="stop"), "send together", users=4)
    assert not told(rounds(4), "send together", users=4, arrival="constant", rate=1.0)


@pytest.mark.parametrize("users", [4, 64])
def test_users_evenly_spread_do_not_send_together(users):
    """However many they are: one after the other, a full answer's time round."""
    sent = [9.0 * n / users for n in range(4 * users)]
    records = [request(s, s + 5, s + 9, finish_reason="length") for s in sent]

    assert not told(records, "send together", users=users)


def test_late_and_open_requests():
    """Each with its number; a clean run says nothing."""
    late = request(0.5, 1, due_s=0.0)
    cut = request(1, 2, outcome="cancelled", censored=True)

    assert told([late, request(1, 2)], "1 requests were sent late", arrival="constant", rate=1.0)
    assert told([cut], "1 requests were still open at the end")
    assert () == summary([request(0, 1), failed(1, 2)]).notes
