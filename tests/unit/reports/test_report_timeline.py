"""The timeline and its request lanes."""

from __future__ import annotations

import msgspec
import report_cases as cases

from perfdoctor.model import RunFacts, Sample
from perfdoctor.reports import _gantt, _timeline
from perfdoctor.reports._bundle import Bundle

GOOD = cases.requests()[0]


def kinds(parts):
    return [kind for kind, _, _ in parts]


def test_queue_and_prefill_are_told_apart_when_the_server_says_so():
    """`serve` samples carry the instant at which work began."""
    began = (GOOD.sent_s + GOOD.first_token_s) / 2

    assert ["queued", "prefill", "decode"] == kinds(_gantt.segments(GOOD, began, 99))


def test_without_the_servers_word_the_wait_is_not_divided():
    """Unknown is drawn as unknown."""
    assert ["wait", "decode"] == kinds(_gantt.segments(GOOD, None, 99))


def test_a_start_outside_the_request_is_not_believed():
    """A mixed-up id must not draw a negative queue."""
    assert ["wait", "decode"] == kinds(_gantt.segments(GOOD, 98.0, 99))


def test_prefill_told_inside_the_stream_is_used():
    """llama.cpp sends its own timings."""
    told = msgspec.structs.replace(GOOD, server_prefill_s=0.01)

    assert ["queued", "prefill", "decode"] == kinds(_gantt.segments(told, None, 99))


def test_failed_and_open_requests_have_kinds_of_their_own():
    """Neither may look like a served request."""
    failed = msgspec.structs.replace(GOOD, outcome="timeout")
    still_open = msgspec.structs.replace(GOOD, end_s=None, last_token_s=None, censored=True)

    assert ["failed"] == kinds(_gantt.segments(failed, None, 99))
    assert [("open", GOOD.sent_s, 99)] == list(_gantt.segments(still_open, None, 99))


def test_an_answer_without_a_token_is_a_wait():
    """It ended well, but never began to stream."""
    empty = msgspec.structs.replace(GOOD, first_token_s=None, last_token_s=None)

    assert ["wait"] == kinds(_gantt.segments(empty, None, 99))


def test_starts_are_read_from_serve_samples_only():
    """A missing instant is no start."""
    samples = (
        Sample(at_s=1, probe="serve", labels={"request": "7"}, values={"started_s": 0.5}),
        Sample(at_s=1, probe="serve", labels={"request": "8"}, values={"started_s": None}),
        Sample(at_s=1, probe="cpu", labels={"request": "9"}, values={"started_s": 0.5}),
    )

    assert {"7": 0.5} == _gantt.starts(samples)


def test_requests_and_probes_share_one_drawing():
    """One SVG, one time axis, phases behind."""
    timeline = _timeline.draw(cases.found())

    assert timeline is not None
    assert 1 == timeline.svg.count("<svg")
    for text in ("Requests in flight", "GPU busy", "Disk reads", "CPU of the server", "GIL held", "Memory"):
        assert f">{text}<" in timeline.svg
    assert "steady, 4 at once" in timeline.svg
    assert {"queued", "prefill", "decode", "failed"} == set(timeline.kinds)
    assert () == timeline.absent


def test_failures_are_marked_by_a_sign_and_a_title():
    """Colour alone does not tell."""
    svg = _timeline.draw(cases.found()).svg

    assert ">×<" in svg
    assert "truncated: the stream ended without finish_reason" in svg


def test_panels_without_a_reading_are_named():
    """Absent is said, not drawn as zero."""
    timeline = _timeline.draw(Bundle(None, None, cases.FACTS, cases.requests(), ()))

    assert "GPU busy" in timeline.absent
    assert ">GPU busy<" not in timeline.svg


def test_several_gpus_get_a_line_each():
    """A busy and an idle GPU must not be averaged."""
    samples = tuple(
        Sample(at_s=t / 5, probe="gpu", labels={"gpu": gpu}, values={"sm_active": level})
        for t in range(50)
        for gpu, level in (("0", 0.9), ("1", 0.1))
    )

    svg = _timeline.draw(Bundle(None, None, cases.FACTS, (), samples)).svg

    assert ">SM 0<" in svg
    assert ">SM 1<" in svg


def test_few_readings_are_marked_one_by_one():
    """Three windows of a whole run must not look like a continuous record."""
    few, many = (
        tuple(
            Sample(at_s=t * 1.0, probe="gil", labels={"pid": "1"}, values={"held_share": 0.5})
            for t in range(n)
        )
        for n in (12, 13)
    )

    assert 12 == _timeline.draw(Bundle(None, None, cases.FACTS, (), few)).svg.count("<circle")
    assert "<circle" not in _timeline.draw(Bundle(None, None, cases.FACTS, (), many)).svg


def test_nothing_recorded_means_no_timeline():
    """A run killed at once has no time axis."""
    assert _timeline.draw(Bundle(None, None, RunFacts())) is None
