"""The shared wording."""

from __future__ import annotations

import msgspec
import pytest
import report_cases as cases

from perfdoctor import registry
from perfdoctor.literal import one_line, visible
from perfdoctor.model import Measured, Roof
from perfdoctor.reports import _words
from perfdoctor.reports._rows import bars, kind_of
from perfdoctor.reports._stacks import Frame, top_frames


def test_every_format_is_found():
    """One file is a format; discovery needs nothing else."""
    found = {name: report.suffix for name, report, _ in registry.discover("perfdoctor.reports", "REPORT")}

    assert {
        "csv": "csv",
        "html": "html",
        "json": "json",
        "jsonl": "jsonl",
        "markdown": "md",
        "terminal": "txt",
    } == found


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.020, 0.024, "20-24 ms"),
        (0.02, 0.02, "20 ms"),
        (0.9, 1.2, "900 ms to 1.2 s"),
    ],
)
def test_intervals_name_a_shared_unit_once(low, high, text):
    """Short where possible, never ambiguous."""
    assert text == _words.interval(low, high, "s")


def test_a_bound_always_says_at_most():
    """A promise may not exceed the ledger."""
    assert "at most 1.6-5.9x faster" == _words.bound(cases.LAUNCH_FIX)
    assert "at most 2x faster" == _words.bound(cases.BATCH_FIX)
    assert "gain not known" == _words.bound(msgspec.structs.replace(cases.BATCH_FIX, bound=None))


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ((True, True, "1 min"), "changes answers; restart; first call: 1 min"),
        (("maybe", False, ""), "may change answers; no restart"),
        ((False, True, ""), "answers stay; restart"),
        ((None, None, ""), ""),
    ],
)
def test_effects_of_a_fix_are_said_as_far_as_known(known, text):
    """A report of an older run knows none of them, and claims none."""
    assert text == _words.effects(*known)


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        ((12.1, 16.0), "14.6x (12.1-16) on H200: 1.5B, torch 2.11; ms per step"),
        (None, "14.6x (one run) on H200: 1.5B, torch 2.11; ms per step"),
    ],
)
def test_a_measurement_says_how_sure_it_is(interval, text):
    """A single run proves little, and says that it is one."""
    one = Measured(
        hardware="H200", model="1.5B", versions="torch 2.11", ratio=14.6, interval=interval, how="ms per step"
    )

    assert text == _words.measured(one)


def test_refuted_fixes_are_never_offered():
    """Even when a finding carries one in front."""
    assert (cases.LAUNCH_FIX,) == _words.offered(cases.LAUNCH)
    assert cases.LAUNCH_FIX == _words.first_fix(cases.FOUND)


def test_a_finding_explained_by_another_does_not_give_the_first_fix():
    """The cause is treated before its consequence."""
    explained = msgspec.structs.replace(cases.LAUNCH, explained_by="serial-server")
    diagnosis = msgspec.structs.replace(cases.FOUND, findings=(explained, cases.SERIAL))

    assert cases.BATCH_FIX == _words.first_fix(diagnosis)


def test_cost_says_what_is_known():
    """Share, seconds, both or neither."""
    bare = msgspec.structs.replace(cases.SERIAL, share=None)

    assert "19 % of request time (290-310 ms each)" == _words.cost(cases.SERIAL)
    assert "290-310 ms each" == _words.cost(bare)
    assert "" == _words.cost(msgspec.structs.replace(bare, seconds=None))
    assert "19 % of load time (290-310 ms)" == _words.cost(msgspec.structs.replace(cases.SERIAL, of="load"))


def test_a_missing_roof_carries_its_reason():
    """Unknown is said with why; nothing at all is empty."""
    assert "not known: no step was profiled" == _words.roof(Roof(missing="no step was profiled"))
    assert "" == _words.roof(Roof())


def test_random_weights_and_an_interruption_are_said():
    """Both change how the numbers are to be read."""
    assert _words.RANDOM_WEIGHTS in _words.notices(cases.found())
    assert _words.ENDINGS["interrupted"] in _words.notices(cases.killed())
    assert _words.ENDINGS["interrupted"] not in _words.notices(cases.found())


def test_the_trust_line_counts_requests_and_the_probes_cost():
    """Measure the measurer, in the first line."""
    text = _words.trust(cases.FOUND.trust, cases.found())

    assert (
        "39 of 40 requests ok; timing error 3.8 ms; probes late at most 4 ms, cost 0.57 % of a core" == text
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ünïcode", "plain text, ünïcode"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("evil\u202egnp.exe", "evil\\u202egnp.exe"),
        ("half \udc80", "half \\udc80"),
        ("two\r\nlines\tand  tab", "two lines and tab"),
    ],
)
def test_unprintable_characters_become_visible(text, shown):
    """A server's error text cannot steer a terminal or reverse a reader's line."""
    assert shown == one_line(text)


def test_visible_keeps_lines():
    """Commands of several lines stay so."""
    assert "a\nb c" == visible("a\nb\tc")


def test_a_ledger_row_of_a_newer_version_shows_its_id():
    """Old reports of new runs do not fail."""
    assert "decode.magic" == kind_of("decode.magic").title


def test_bars_leave_out_rows_without_time_and_describe_themselves():
    """The description carries every number of the bar."""
    mean, p95, load = bars(cases.FOUND.ledger)

    assert "client_wait" not in {r.row for r in mean.rows}
    assert mean.description.startswith("Mean request, 1.61 s: Server queue 19 %, Prefill 3 %")
    assert ("p95 request", "Model load") == (p95.name, load.name)


def test_top_frames_rank_by_own_share():
    """Recursion counts a stack once; lines without a count are skipped."""
    folded = "main;loop;loop 3\nmain;idle 1\nnot a stack\n\n"

    assert (Frame("loop", 0.75, 0.75), Frame("idle", 0.25, 0.25)) == top_frames(folded)
    assert () == top_frames("")
