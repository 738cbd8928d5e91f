"""The order of the runs, and the pairs that it makes."""

from __future__ import annotations

import pytest

from perfdoctor.model import TriedRun
from perfdoctor.verify._order import equal_ratios, pairs_of, sequence


def letters(pairs: int, seed: int) -> str:
    return "".join(run.side[0] for run in sequence(pairs, seed))


def test_pairs_turn_round():
    """One alone, then AB, BA, AB: every change of side is a pair, and so is every repetition."""
    assert {"bbaabba", "aabbaab"} == {letters(3, seed) for seed in range(8)}
    assert letters(3, 5) == letters(3, 5)


@pytest.mark.parametrize("pairs", [5, 6])
def test_each_side_stands_in_each_place(pairs: int):
    """Both sides are first and second within the pairs about as often; each pair has one of both."""
    runs = [run for run in sequence(pairs, 0) if run.pair]
    firsts = [runs[2 * i].side for i in range(pairs)]

    assert pairs // 2 <= firsts.count("before") <= (pairs + 1) // 2
    assert [{"before", "after"}] * pairs == [{runs[2 * i].side, runs[2 * i + 1].side} for i in range(pairs)]


def valued(text: str, values: list[float]) -> list[TriedRun]:
    names = {"b": "before", "a": "after"}
    runs = [TriedRun(side=names[text[0]], pair=0, value=values[0])]  # type: ignore[arg-type]
    for i, (side, value) in enumerate(zip(text[1:], values[1:], strict=True)):
        runs.append(TriedRun(side=names[side], pair=1 + i // 2, value=value))  # type: ignore[arg-type]
    return runs


def test_pairs_and_equals_of_a_sequence():
    """b|ba|ab|ba: three pairs, and three repetitions of one side."""
    runs = valued("bbaabba", [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])

    assert [(2.0, 4.0), (16.0, 8.0), (32.0, 64.0)] == [(b.value, a.value) for b, a in pairs_of(runs)]
    assert [2.0, 2.0, 2.0] == equal_ratios(runs)


def test_a_run_that_does_not_count_takes_its_pair_along():
    """And both equal pairs that it is in; so does one that never came to be."""
    runs = valued("bbaabba", [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    out = [
        run if i != 2 else TriedRun(side="after", pair=1, value=4.0, left_out="it")
        for i, run in enumerate(runs)
    ]

    assert [(16.0, 8.0), (32.0, 64.0)] == [(b.value, a.value) for b, a in pairs_of(out)]
    assert [2.0, 2.0] == equal_ratios(out)
    assert [(2.0, 4.0)] == [(b.value, a.value) for b, a in pairs_of(runs[:4])]
