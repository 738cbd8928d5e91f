"""What a comparison says of runs whose numbers are known."""

from __future__ import annotations

from pathlib import Path

import compare_cases as cases
import pytest

from perfdoctor import compare, sweep
from perfdoctor.errors import CannotJudge, RunFolderError
from perfdoctor.model import ComparedMetric, ComparedPart, Comparison, HostFacts, Prompts, Sweep, SweepLevel
from perfdoctor.sweep import _folder
from tests import factories


def compared(before: Path, after: Path, fail_on: str | None = None) -> Comparison:
    return compare.compare(compare.read_side(str(before)), compare.read_side(str(after)), fail_on)


def row(part: ComparedPart, metric: str) -> ComparedMetric:
    return next(row for row in part.metrics if row.metric == metric)


def test_slower_tokens_are_worse_and_the_first_token_is_not(tmp_path: Path):
    """A fifth longer from token to token: TPOT, end to end and the rates; TTFT has not changed."""
    before = cases.write(tmp_path / "before")
    after = cases.write(tmp_path / "after", cases.records(decode_s=1.2))

    (part,) = compared(before, after).parts

    assert ("requests", (1, 1)) == (part.over, part.runs)
    assert ("worse", "no_significant_change") == (
        row(part, "tpot_p50").verdict,
        row(part, "ttft_p50").verdict,
    )
    tpot = row(part, "tpot_p50")
    assert [0.102, 0.1224, 1.2] == pytest.approx([tpot.before, tpot.after, tpot.ratio])
    assert tpot.interval and tpot.interval[0] <= 1.2 <= tpot.interval[1]
    assert (200, 200) == tpot.n
    for rate in ("requests_per_s", "output_tokens_per_s"):
        assert ("worse", pytest.approx(1.1 / 1.3, rel=0.01)) == (
            row(part, rate).verdict,
            row(part, rate).ratio,
        )
    assert any("how far two runs of the same differ is not known" in note for note in part.notes)


def test_a_run_against_itself_has_not_changed(tmp_path: Path):
    """In nothing."""
    before = cases.write(tmp_path / "before")

    (part,) = compared(before, before).parts

    assert {"no_significant_change"} == {row.verdict for row in part.metrics}
    assert {1.0} == {row.ratio for row in part.metrics if row.metric != "error_rate"}


def test_unequal_work_is_compared_per_token(tmp_path: Path):
    """Answers of 22 tokens in 2.1 s against 11 in 1.1 s: a token takes as long, and this is said."""
    before = cases.write(tmp_path / "before")
    longer = cases.records(decode_s=2.1, output_tokens=22, token_at_s=())
    after = cases.write(tmp_path / "after", longer)

    (part,) = compared(before, after).parts

    e2e = row(part, "e2e_mean")
    assert (True, False) == (e2e.per_token, row(part, "ttft_p50").per_token)
    assert [0.102, 0.102, 1.0] == pytest.approx([e2e.before, e2e.after, e2e.ratio], rel=0.001)
    assert ("unknown", None) == (row(part, "requests_per_s").verdict, row(part, "requests_per_s").interval)
    assert any("11 tokens before and 22 after" in note for note in part.notes)


def test_equal_work_is_not_divided(tmp_path: Path):
    """A token in two hundred more or less is the same work."""
    before = cases.write(tmp_path / "before", cases.records(output_tokens=200))
    after = cases.write(tmp_path / "after", cases.records(output_tokens=201))

    (part,) = compared(before, after).parts

    assert not row(part, "e2e_mean").per_token
    assert not any("unequal" in note for note in part.notes)


def test_prompts_of_another_length_are_told(tmp_path: Path):
    """TTFT is then of different work."""
    before = cases.write(tmp_path / "before")
    after = cases.write(tmp_path / "after", cases.records(prompt_tokens=96))

    (part,) = compared(before, after).parts

    assert any("48 tokens before and 96 after" in note for note in part.notes)


def test_failures_are_counted_by_points(tmp_path: Path):
    """None of 200 against 30 of 200: 15 points more."""
    failing = cases.records(170) + [
        factories.request(900 + i, 500.0 + i, outcome="http_500") for i in range(30)
    ]
    before = cases.write(tmp_path / "before")
    after = cases.write(tmp_path / "after", failing)

    (part,) = compared(before, after).parts

    assert ("worse", pytest.approx(0.15)) == (row(part, "error_rate").verdict, row(part, "error_rate").ratio)


def test_too_few_requests_give_numbers_and_no_verdict(tmp_path: Path):
    """With how many are needed."""
    before = cases.write(tmp_path / "before", cases.records(40))
    after = cases.write(tmp_path / "after", cases.records(40, decode_s=2.0))

    (part,) = compared(before, after).parts

    p95 = row(part, "e2e_p95")
    assert ("unknown", None, "40 values, 73 at least are needed") == (p95.verdict, p95.interval, p95.reason)
    assert "worse" == row(part, "e2e_mean").verdict


def test_folders_of_several_runs_are_compared_over_runs(tmp_path: Path):
    """Runs 1, 2 and 3 % apart, 20 % between the sides; what is no run is passed over."""
    for i in range(3):
        cases.write(tmp_path / "before" / f"{i}", cases.records(30, decode_s=1 + i / 100))
        cases.write(tmp_path / "after" / f"{i}", cases.records(30, decode_s=1.2 + i / 100))
    (tmp_path / "after" / "notes").mkdir()

    (part,) = compared(tmp_path / "before", tmp_path / "after").parts

    assert ("runs", (3, 3)) == (part.over, part.runs)
    e2e = row(part, "e2e_mean")
    assert ("worse", (3, 3)) == (e2e.verdict, e2e.n)
    assert pytest.approx(1.31 / 1.11, rel=0.001) == e2e.ratio
    assert not any("one run on each side" in note for note in part.notes)


def test_a_single_run_borrows_the_other_sides_spread(tmp_path: Path):
    """And says so; the spread of three runs 20 % apart explains 20 %."""
    for i in range(3):
        cases.write(tmp_path / "before" / f"{i}", cases.records(30, decode_s=1 + i / 5))
    after = cases.write(tmp_path / "after", cases.records(30, decode_s=1.4))

    (part,) = compared(tmp_path / "before", after).parts

    assert ("runs", (3, 1)) == (part.over, part.runs)
    assert "no_significant_change" == row(part, "e2e_mean").verdict
    assert any("one side is a single run" in note for note in part.notes)


def test_runs_that_are_not_alike_are_told(tmp_path: Path):
    """A folder of runs at one and at four users is no repetition."""
    cases.write(tmp_path / "before" / "1")
    cases.write(tmp_path / "before" / "2", concurrency=4)
    after = cases.write(tmp_path / "after")

    notes = compared(tmp_path / "before", after).notes

    assert any("before: its runs are not alike in: concurrency" in note for note in notes)


def test_pairs_are_compared_within_each(tmp_path: Path):
    """The machine gets 30 % slower from pair to pair, and the fix is 10 % faster in each."""
    pairs = []
    for i, slow in enumerate((1.0, 1.3, 1.7)):
        before = cases.write(tmp_path / f"{i}b", cases.records(30, 0.1 * slow, slow))
        after = cases.write(tmp_path / f"{i}a", cases.records(30, 0.09 * slow, 0.9 * slow))
        pairs.append((compare.read_run(before), compare.read_run(after)))

    part = compare.compare_pairs(pairs)

    assert ("pairs", "better") == (part.over, row(part, "e2e_mean").verdict)
    assert pytest.approx(0.9) == row(part, "e2e_mean").ratio


# ------------------------------------------------------------------------------ what cannot be compared


def test_a_run_limited_by_its_client_is_refused(tmp_path: Path):
    """Exit 4: its numbers are not the server's."""
    busy = factories.QUIET_CLIENT.__class__(cpu_share=0.99)
    before = cases.write(tmp_path / "before")
    after = cases.write(tmp_path / "after", client=busy)

    with pytest.raises(CannotJudge, match=r"after cannot be compared.*99 % of a core"):
        compared(before, after)


def test_one_untrusted_run_of_several_is_left_out(tmp_path: Path):
    """By name."""
    busy = factories.QUIET_CLIENT.__class__(cpu_share=0.99)
    for i, client in enumerate((factories.QUIET_CLIENT, busy, factories.QUIET_CLIENT)):
        cases.write(tmp_path / "before" / f"{i}", client=client)
    after = cases.write(tmp_path / "after")

    found = compared(tmp_path / "before", after)

    assert (2, 1) == found.parts[0].runs
    assert any(note.startswith("before: 1 is left out") for note in found.notes)


def test_a_run_without_an_answer_is_refused(tmp_path: Path):
    """It has nothing to compare."""
    before = cases.write(tmp_path / "before", [factories.request(outcome="timeout")])

    with pytest.raises(CannotJudge, match="no request of its load was answered"):
        compared(before, before)


def test_a_folder_without_runs_is_named(tmp_path: Path):
    """As is one that is not there."""
    with pytest.raises(RunFolderError, match="holds no run"):
        compare.read_side(str(tmp_path))
    with pytest.raises(RunFolderError, match="there is no run folder"):
        compare.read_side(str(tmp_path / "nowhere"))


# ------------------------------------------------------------------------------ sweeps


def write_sweep(folder: Path, levels: dict[int, float]) -> Path:
    """Levels by users, with the time a token takes in each."""
    rows = []
    for users, decode_s in levels.items():
        name = f"c{users}"
        cases.write(folder / name, cases.records(40, decode_s=decode_s), concurrency=users)
        rows.append(SweepLevel(level=users, run=name, why="given", state="complete"))
    _folder.write(folder, Sweep(sweep=folder.name, state="complete", levels=tuple(rows)))
    return folder


def test_sweeps_are_compared_level_by_level(tmp_path: Path):
    """Those that both have; the others are named."""
    before = write_sweep(tmp_path / "before", {1: 1.0, 2: 1.0})
    after = write_sweep(tmp_path / "after", {2: 1.5, 4: 1.0})

    found = compared(before, after)

    assert sweep.is_sweep(before)
    assert ["2 users"] == [part.name for part in found.parts]
    assert "worse" == row(found.parts[0], "tpot_p50").verdict
    assert {"1 users: on one side only", "4 users: on one side only"} <= set(found.notes)


def test_sweeps_without_a_common_level_are_refused(tmp_path: Path):
    """And a sweep against a single run."""
    before = write_sweep(tmp_path / "before", {1: 1.0})
    after = write_sweep(tmp_path / "after", {2: 1.0})
    run = cases.write(tmp_path / "run")

    for other in (after, run):
        with pytest.raises(CannotJudge, match="have nothing in common"):
            compared(before, other)


# ------------------------------------------------------------------------------ what differs


def differing(tmp_path: Path, **changes) -> list[tuple[str, str]]:
    before = cases.write(tmp_path / "before")
    after = cases.write(tmp_path / "after", **changes)
    return [(found.what, found.name) for found in compared(before, after).differences]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"concurrency": 4}, [("load", "concurrency")]),
        ({"prompts": Prompts(input_tokens=96)}, [("prompts", "input tokens")]),
        ({"host": HostFacts(hostname="there", cores=64)}, [("machine", "hostname"), ("machine", "cores")]),
        ({"gpus": (factories.H200,)}, [("machine", "GPU name"), ("machine", "GPU driver")]),
        ({"target": factories.local_target(model="other")}, [("model", "model"), ("setting", "engine")]),
        ({"perfdoctor": "0.0.1"}, [("versions", "perfdoctor")]),
    ],
)
def test_what_is_not_the_same_is_listed(tmp_path: Path, changes: dict, found: list):
    """Each difference by name, and nothing that is the same."""
    assert set(found) <= set(differing(tmp_path, **changes))
    assert bool(found) == bool(differing(tmp_path / "again", **changes))


def test_the_ledger_of_two_diagnoses_stands_side_by_side(tmp_path: Path):
    """And of load tests there is none."""
    fields = {"command": "diagnose", "baseline": (10.0, 20.0)}
    before = cases.write(tmp_path / "before", [*factories.baseline_requests(), *cases.records(40)], **fields)
    plain = cases.write(tmp_path / "plain")

    (part,) = compared(before, before).parts

    assert part.ledger_before == part.ledger_after
    assert pytest.approx(1.122, rel=0.01) == sum(row.seconds for row in part.ledger_before)
    (part,) = compared(before, plain).parts
    assert ((), ()) == (part.ledger_before, part.ledger_after)
