"""The knee, on curves of queueing theory; and why it is not Kneedle's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import sweep_cases as cases

from perfdoctor.model import Knee, SweepLevel, Trust
from perfdoctor.sweep._knee import find_knee


def kneedle(rows: Sequence[SweepLevel]) -> float:
    """Satopaa et al. 2011, for a concave rising curve, without smoothing: farthest above the chord."""
    xs, ys = [row.level for row in rows], [row.requests_per_s or 0.0 for row in rows]
    above = [
        (y - min(ys)) / (max(ys) - min(ys)) - (x - xs[0]) / (xs[-1] - xs[0])
        for x, y in zip(xs, ys, strict=True)
    ]
    return xs[above.index(max(above))]


@pytest.mark.parametrize(("c", "knee"), [(1, 1), (4, 4), (6, 8), (16, 16)])
def test_the_knee_of_c_servers_is_c(c: int, knee: int):
    """M/M/1 and M/M/c without think time; where c was no level, the next one above, and the gap is told."""
    found = find_knee("concurrency", cases.rows(cases.slots(c, 0.05)))

    assert ("found", knee, None if knee == 1 else (knee / 2, knee)) == (
        found.status,
        found.level,
        found.between,
    )


@pytest.mark.parametrize("c", [1, 4])
def test_users_who_think_move_the_knee_to_where_they_keep_the_server_busy(c: int):
    """N* = c (Z + S) / S, here 10 c; chance rounds the corner off, so up to half as many again."""
    found = find_knee("concurrency", cases.rows(cases.thinking(c, 1.0, 9.0), range(1, 40 * c)))

    assert 10 * c <= (found.level or 0) <= 15 * c


def test_a_batching_server_is_at_its_knee_when_the_batch_is_full():
    """Steps of 10 ms and 1 ms a request, eight at most: 4 users have 64 % of the throughput, 8 all of it."""
    found = find_knee("concurrency", cases.rows(cases.batching(8, 0.010, 0.001)))

    assert ("found", 8) == (found.status, found.level)


def test_kneedle_moves_with_the_highest_level_without_end():
    """A batch without a limit, N / (8 + N): ours converges to 9 x 8, since more gains nothing."""
    curve = cases.batching(10**9, 8.0, 1.0)
    levels = [2.0**i for i in range(15)]
    found = [find_knee("concurrency", cases.rows(curve, levels[: i + 1])).level for i in (8, 10, 14)]

    assert [64, 128, 128] == found
    assert [32, 64, 256] == [kneedle(cases.rows(curve, levels[: i + 1])) for i in (8, 10, 12)]
    assert 72 == find_knee("concurrency", cases.rows(curve, [*range(1, 200), 10.0**6])).level


def test_kneedle_takes_the_noise_of_a_flat_line_for_a_knee():
    """One server, and 1 % of noise: one user is enough, whatever level was luckiest."""
    noise = dict(zip(cases.DOUBLED, (1.0, 0.99, 1.01, 1.0, 0.995, 1.005, 1.0), strict=True))
    rows = cases.rows(lambda users: 20 * noise[users])

    assert 1 == find_knee("concurrency", rows).level
    assert 4 == kneedle(rows)


def test_a_line_that_still_rises_has_no_knee():
    """Also where the two highest levels lie so near that one has 90 % of the other."""
    assert "not_reached" == find_knee("concurrency", cases.rows(lambda n: n)).status
    assert "not_reached" == find_knee("concurrency", cases.rows(lambda n: n, (1, 10, 11))).status


@pytest.mark.parametrize(
    "change",
    [
        {"trust": Trust(status="invalid")},
        {"requests_per_s": None},
        {"error": "it died"},
        {"repeated": True},
        {"state": "interrupted"},
    ],
)
def test_what_cannot_be_trusted_is_no_point_of_the_curve(change):
    """A client that is the limit would look like a knee of the server's."""
    assert (
        "unknown"
        == find_knee(
            "concurrency", [cases.row(1, 10), cases.row(8, **{"requests_per_s": 10} | change)]
        ).status
    )
    assert "found" == find_knee("concurrency", [cases.row(1, 10), cases.row(8, 10)]).status


def test_the_knee_of_rates_is_the_highest_that_was_kept_up_with():
    """M/M/1 of 10/s: the level nearest to the highest throughput would be one that is overloaded."""
    found = find_knee("rate", cases.rows(lambda rate: min(rate, 10.0), (1, 2, 4, 8, 16, 32)))

    assert ("found", 8, (8, 16)) == (found.status, found.level, found.between)


def test_both_sides_of_ninety_percent_of_a_rate():
    """The part that was served decides, not the answers that came while the load lasted."""
    kept, lost = cases.row(20, 12, served_share=0.9), cases.row(20, 18, served_share=0.89)

    assert "not_reached" == find_knee("rate", [cases.row(10, 10, served_share=1.0), kept]).status
    assert ("found", 10) == _of(find_knee("rate", [cases.row(10, 10, served_share=1.0), lost]))
    assert ("unknown", None) == _of(find_knee("rate", [cases.row(10, 8, served_share=0.8), lost]))


def test_a_rate_of_too_few_requests_is_no_point():
    """It may have been served or not; of none of them can it be said."""
    assert ("found", 20) == _of(
        find_knee(
            "rate",
            [
                cases.row(10, 2),
                cases.row(20, 20, served_share=1.0),
                cases.row(40, 20, served_share=0.5),
            ],
        )
    )
    assert ("unknown", None) == _of(find_knee("rate", [cases.row(10, 2), cases.row(20, 2)]))


def _of(knee: Knee) -> tuple[str, float | None]:
    return knee.status, knee.level
