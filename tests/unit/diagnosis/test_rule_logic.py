"""Three-valued logic: a missing signal never counts as either side."""

from __future__ import annotations

import pytest

from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.rule import Condition, all_of, any_of, at_least, below, first_known, only_shows
from perfdoctor.model import Signal

YES, NO, DARK = at_least("yes", 1, source="s"), at_least("no", 1, source="s"), at_least("dark", 1, source="s")


def table(**values: float | None) -> Table:
    return {
        k: Signal(name=k, value=v, unit="share", missing="no light" if v is None else None)
        for k, v in values.items()
    }


SEEN = table(yes=1.0, no=0.0, dark=None)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (all_of(YES, YES), "hit"),
        (all_of(YES, NO), "clear"),
        (all_of(DARK, NO), "clear"),
        (all_of(YES, DARK), "unknown"),
        (any_of(NO, NO), "clear"),
        (any_of(DARK, YES), "hit"),
        (any_of(NO, DARK), "unknown"),
        (first_known(DARK, YES), "hit"),
        (first_known(DARK, NO), "clear"),
        (first_known(NO, YES), "clear"),
        (first_known(DARK, DARK), "unknown"),
        (only_shows(YES, why="w"), "hit"),
        (only_shows(NO, why="w"), "unknown"),
        (only_shows(DARK, why="w"), "unknown"),
        (all_of(any_of(DARK, YES), first_known(DARK, YES)), "hit"),
    ],
)
def test_truth_table(condition: Condition, expected: str) -> None:
    """Every combination that matters of true, false and not decidable."""
    assert expected == condition.test(SEEN).status


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        (below("x", 0.6, source="s"), 0.599, "hit"),
        (below("x", 0.6, source="s"), 0.6, "clear"),
        (at_least("x", 0.6, source="s"), 0.6, "hit"),
        (at_least("x", 0.6, source="s"), 0.599, "clear"),
        (below("x", 0.6, source="s"), None, "unknown"),
        (at_least("x", 0.6, source="s"), None, "unknown"),
    ],
)
def test_limits(condition: Condition, value: float | None, expected: str) -> None:
    """The limit itself belongs to at_least; a missing value belongs to nobody."""
    assert expected == condition.test(table(x=value)).status


def test_evidence_is_what_was_compared() -> None:
    """A hit carries value, limit and source; parts that were not true carry nothing."""
    answer = any_of(NO, all_of(YES, below("no", 0.5, source="t"))).test(SEEN)

    assert [("yes", 1.0, "at_least", 1.0, "s"), ("no", 0.0, "below", 0.5, "t")] == [
        (e.signal, e.value, e.comparison, e.limit, e.source) for e in answer.evidence
    ]


def test_clear_names_what_failed() -> None:
    """The reason holds the number and the limit."""
    assert "no is 0 % (limit: at least 100 %)" == all_of(YES, NO).test(SEEN).reason.replace("0 ms", "0 %")


def test_unknown_groups_signals_by_cause() -> None:
    """Signals that are missing for one reason are named together, a signal nobody derives too."""
    answer = first_known(DARK, at_least("night", 1, source="s"), at_least("dusk", 1, source="s"))

    found = answer.test(table(dark=None, night=None))

    assert "dark, night are missing: no light; dusk is missing: it was not measured" == found.reason
