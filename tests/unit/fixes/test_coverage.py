"""Whoever holds one of the source documents finds what answers each of its rows."""

from __future__ import annotations

import pytest

from perfdoctor import pages
from perfdoctor.diagnosis.catalogue import load_fixes
from perfdoctor.diagnosis.claims import load_claims

# The rows of the claims table: so many of each document, and the contradictions between them.
ROWS = tuple(
    f"{document}-{n:02}"
    for document, last in {"D0": 17, "D1": 14, "D2": 17, "D3": 13, "D4": 17}.items()
    for n in range(1, last + 1)
)
CONTRADICTIONS = tuple(f"C{n}" for n in range(1, 11))


def test_there_are_as_many_rows_as_in_the_table():
    """The table counts 78 claims and ten contradictions."""
    assert (78, 10) == (len(ROWS), len(CONTRADICTIONS))


@pytest.mark.parametrize("row", (*ROWS, *CONTRADICTIONS))
def test_every_row_is_treated(row):
    """By a fix that cites it, or by an answer; `explain` shows either."""
    assert row in load_claims() or any(row in f.documents for f in load_fixes())
    page = pages.find_page(row)
    assert ("claim", row) == (page.kind, page.name)


def test_no_row_is_invented():
    """Neither a fix nor the table of answers cites what the documents do not have."""
    cited = {d for f in load_fixes() for d in f.documents if " " not in d}

    assert cited <= set(ROWS)
    assert set(load_claims()) <= {*ROWS, *CONTRADICTIONS}


@pytest.mark.parametrize("row", load_claims())
def test_references_of_an_answer_resolve(row):
    """Each name under `see` is a page, and no page of the same kind: no answer points to another answer."""
    claim = load_claims()[row]

    assert claim.says and claim.answer
    assert all(
        pages.find_page(name).name == name and pages.find_page(name).kind != "claim" for name in claim.see
    )


def test_every_contradiction_points_to_what_settles_it():
    """A contradiction without a test would be one more opinion."""
    assert all(load_claims()[row].see for row in CONTRADICTIONS)


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ("D1-05", "## preallocate-zero-kv-tuples (refuted)"),
        ("D1-05", "## compile-with-static-cache (confirmed)"),
        ("D0-06", "Said: nvidia-smi dmon shows sm 32 and mem 68"),
        ("D0-06", "See: bandwidth-bound-decode"),
        ("D4-17", "See: nothing else"),
        ("c10", "One thread that spins reads 100 %"),
    ],
)
def test_a_row_shows_who_treats_it(row, shown):
    """The wrong program and the sound form of the same idea stand side by side."""
    assert shown in pages.find_page(row).body_markdown
