"""The verdict on a fix, from the values of its runs."""

from __future__ import annotations

import pytest

from perfdoctor.change import Change
from perfdoctor.model import LedgerRow, Outputs, TriedRun, Verification
from perfdoctor.verify import _outcome, _plan
from perfdoctor.verify._order import sequence

SAME = Outputs(prompts=6, tokens=32)
OTHER = Outputs(prompts=6, tokens=32, differ=2, first=7)
WOBBLE = (1.0, 1.01, 0.99, 1.02, 1.0, 0.98, 1.01, 0.99, 1.0, 1.02, 0.99, 1.01, 1.0)


def verification(factor: float, outputs: Outputs = SAME, pairs: int = 6, wobble=WOBBLE) -> Verification:
    """An answer takes a second without the fix, and a second over `factor` with it."""
    runs = tuple(
        TriedRun(side=run.side, pair=run.pair, value=w / (factor if run.side == "after" else 1.0))
        for run, w in zip(sequence(pairs, 0), wobble, strict=False)
    )
    return _outcome.concluded(Verification(runs=runs, outputs=outputs))


@pytest.mark.parametrize(
    ("factor", "outputs", "verdict", "effect"),
    [
        (1.3, SAME, "helps", "helps"),
        (0.7, SAME, "hurts", "hurts"),
        (1.0, SAME, "no_effect", "no_effect"),
        (1.3, OTHER, "changes_output", "helps"),
        (1.0, OTHER, "changes_output", "no_effect"),
        (1.3, Outputs(prompts=6, differ_together=1), "changes_output", "helps"),
        (1.3, Outputs(prompts=6, unsteady=6, missing="it"), "helps", "helps"),
    ],
)
def test_verdicts(factor: float, outputs: Outputs, verdict: str, effect: str):
    """That answers change is said first; the ratio is the time without over the time with it."""
    found = verification(factor, outputs)

    assert (verdict, effect) == (found.verdict, found.effect)
    assert found.ratio == pytest.approx(factor, rel=0.02)
    assert found.interval and found.interval[0] <= found.ratio <= found.interval[1]


def test_noise_wider_than_the_effect_is_no_effect():
    """Equal sides 30 % apart explain 10 %."""
    wild = (1.0, 1.3, 1.0, 1.3, 1.0, 1.3, 1.0, 1.3, 1.0, 1.3, 1.0, 1.3, 1.0)

    found = verification(1.1, wobble=wild)

    assert "no_effect" == found.verdict
    assert "no significant change" in found.reason
    assert found.noise and found.noise > 1.1


@pytest.mark.parametrize(
    ("moved", "noise", "effect"),
    [
        (Change(1.10, 1.05, 1.15), 1.02, "helps"),
        (Change(1.10, 0.99, 1.20), 1.02, "no_effect"),  # the interval holds 1
        (Change(1.10, 1.05, 1.15), 1.10, "no_effect"),  # at the floor
        (Change(0.90, 0.85, 0.95), 1.10, "hurts"),
        (Change(0.92, 0.85, 0.95), 1.10, "no_effect"),  # 1 / 0.92 is below the floor
    ],
)
def test_both_sides_of_the_floor(moved: Change, noise: float, effect: str):
    """It holds for gains and losses alike."""
    assert effect == _outcome.effect_of(moved, noise)


@pytest.mark.parametrize(("pairs", "judged"), [(2, False), (3, True)])
def test_few_pairs_are_not_judged(pairs: int, judged: bool):
    """Of two nothing can be said; the reason counts them."""
    found = verification(1.3, pairs=pairs)

    assert judged == (found.verdict != "not_judged")
    assert judged or "2 pairs of runs count" in found.reason


def row(name: str, share: float) -> LedgerRow:
    return LedgerRow(row=name, seconds=share, share=share)


def test_the_bound_is_of_the_rows_that_the_fix_removes():
    """Half of the time, of which 2 to 20 % remain: 1.67 to 1.96 times as fast at most."""
    fix = _plan.find_fix("compile-with-static-cache")
    rows = (row("decode.launch_gap", 0.4), row("prefill.launch_gap", 0.1), row("decode.memory", 0.5))

    bound, source = _outcome.bound_of(fix, rows)

    assert (1 / 0.6, 1 / 0.51) == pytest.approx(bound)
    assert "50 % of the time" in source
    assert (None, "the before side has no ledger") == _outcome.bound_of(fix, ())
    assert _outcome.bound_of(None, rows)[0] is None
