"""When an untrusted level of a sweep makes its answer doubtful."""

from __future__ import annotations

import pytest

from perfdoctor import sweep_commands
from perfdoctor.model import Knee, Sweep, SweepLevel, Trust, WithinSlo
from perfdoctor.sweep import levels_in_doubt
from tests.unit.sweep.sweep_cases import row

INVALID = Trust(status="invalid", reasons=("the client was the limit",))


def levels(*invalid: float) -> tuple[SweepLevel, ...]:
    """1, 2, 4, 8 users, some of which cannot be trusted."""
    return tuple(
        row(level, trust=INVALID if level in invalid else Trust(status="valid")) for level in (1, 2, 4, 8)
    )


@pytest.mark.parametrize(
    ("slo", "invalid", "expected"),
    [
        (WithinSlo(status="found", level=2, missed_at=8), (4,), (4,)),
        (WithinSlo(status="found", level=2, missed_at=8), (1,), ()),
        (WithinSlo(status="found", level=2, missed_at=4), (8,), ()),
        (WithinSlo(status="not_reached", level=4), (8,), (8,)),
        (WithinSlo(status="none", missed_at=2), (1,), (1,)),
        (WithinSlo(status="none", missed_at=1), (4, 8), ()),
        (WithinSlo(status="found", level=2, missed_at=8), (), ()),
    ],
)
def test_with_an_slo_between_the_last_within_and_the_first_that_misses_it(slo, invalid, expected):
    """A level beside the bracket changes nothing."""
    found = Sweep(levels=levels(*invalid), slo=slo, slo_text="ttft_p95<1s")

    assert expected == levels_in_doubt(found)


@pytest.mark.parametrize(
    ("knee", "invalid", "expected"),
    [
        (Knee(status="found", level=4, between=(1, 4)), (2,), (2,)),
        (Knee(status="found", level=4, between=(2, 4)), (8,), ()),
        (Knee(status="found", level=1), (8,), ()),
        (Knee(status="not_reached"), (8,), (8,)),
        (None, (8,), (8,)),
    ],
)
def test_without_an_slo_beside_the_knee(knee, invalid, expected):
    """Where throughput was seen to be flat, one more level above it does not matter."""
    assert expected == levels_in_doubt(Sweep(levels=levels(*invalid), knee=knee))


def test_a_repeated_level_is_judged_by_its_last_run():
    """The run that could not be trusted was made again."""
    again = (row(4, trust=INVALID, repeated=True), row(4))

    assert () == levels_in_doubt(Sweep(levels=again))


@pytest.mark.parametrize(
    ("slo", "invalid", "code"),
    [
        (WithinSlo(status="found", level=2, missed_at=8), (4,), 4),
        (WithinSlo(status="found", level=2, missed_at=8), (1,), 0),
        (WithinSlo(status="none", missed_at=1), (4,), 1),
        (WithinSlo(status="none", missed_at=2), (1,), 4),
    ],
)
def test_the_exit_code_of_a_sweep(slo, invalid, code, capsys):
    """Doubt comes before the SLO; and says which level."""
    found = Sweep(state="complete", levels=levels(*invalid), slo=slo, slo_text="ttft_p95<1s")

    assert code == sweep_commands.exit_code(found) == sweep_commands.judged_code(found)
    assert (f"Exit {code}" in capsys.readouterr().err) == bool(code)
