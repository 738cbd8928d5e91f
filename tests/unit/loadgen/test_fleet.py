"""What several driver processes say becomes one answer, and how many of them a load asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdoctor.loadgen import fleet_merge, fleet_size
from perfdoctor.loadgen.stage import Snapshot
from perfdoctor.model import ClientFacts, Load, Phase, Prompts, RequestRecord


def test_the_worst_process_speaks_for_all():
    """A slow one spoils its part of the numbers; ports come out of one range, so their use adds up."""
    fast = ClientFacts(cpu_share=0.2, read_lag_p99_s=0.001, fds_limit=900, ports_used=5, redialled=1)
    slow = ClientFacts(cpu_share=0.9, read_lag_p99_s=None, fds_limit=800, ports_used=7, redialled=2)

    merged = fleet_merge.facts([fast, slow])

    assert (0.9, 0.001) == (merged.cpu_share, merged.read_lag_p99_s)
    assert (12, 3, 2) == (merged.ports_used, merged.redialled, merged.workers)
    assert 800 == merged.fds_limit


def test_what_no_process_knows_stays_unknown():
    """None, not 0; and a transport is a name, not a number."""
    merged = fleet_merge.facts([ClientFacts(transport="raw"), ClientFacts(transport="raw")])

    assert merged.runq_wait_share is None
    assert merged.ports_used is None
    assert "raw" == merged.transport


def test_counts_of_the_live_line_add_up():
    """All but the time."""
    parts = [Snapshot(3, 2, 1, 4, 50, 1.0), Snapshot(5, 5, 0, 1, 70, 1.1)]

    assert Snapshot(8, 7, 1, 5, 120, 1.1, 2) == fleet_merge.snapshot(parts)


def test_a_phase_holds_every_request_of_its_processes():
    """From the first hand-over to the last end."""
    parts = [
        Phase(name="steady", start_s=1.0, end_s=5.0, concurrency=8),
        Phase(name="steady", start_s=1.2, end_s=5.5, concurrency=8),
    ]

    assert Phase(name="steady", start_s=1.0, end_s=5.5, concurrency=8) == fleet_merge.phase(parts)


@pytest.mark.parametrize(
    ("events", "cores", "expected"),
    [
        (None, 16, 1),
        (1.0 * fleet_size.EVENTS_PER_S, 16, 1),
        (1.0 * fleet_size.EVENTS_PER_S + 1, 16, 2),
        (9.5 * fleet_size.EVENTS_PER_S, 16, 10),
        (9.5 * fleet_size.EVENTS_PER_S, 4, 3),
        (9.5 * fleet_size.EVENTS_PER_S, 2, 1),
        (9.5 * fleet_size.EVENTS_PER_S, 1, 1),
    ],
)
def test_processes_for_a_load(events: float | None, cores: int, expected: int):
    """As many as the events ask for; one core is left to the rest, and one process is always there."""
    assert expected == fleet_size.workers(events, cores)


def pace(*token_at_s: tuple[float, ...]) -> fleet_size.Pace:
    seen = fleet_size.Pace()
    for at_s in token_at_s:
        seen.note(RequestRecord(id=1, phase="baseline", due_s=0.0, token_at_s=at_s))
    return seen


def test_the_pace_of_a_stream_is_that_of_its_gaps():
    """The wait for the first token is no part of it; chunks that came together say only that it is fast."""
    assert 100.0 == pytest.approx(pace((5.0, 5.01, 5.02), (9.0, 9.01)).events_per_s)
    assert fleet_size.MOST_PER_STREAM == pace((5.0, 5.0)).events_per_s
    assert pace((5.0,), ()).events_per_s is None


def test_events_of_a_closed_loop_are_users_times_pace():
    """Nobody knows them before an answer was seen."""
    load = Load(concurrency=64)

    assert 6400.0 == pytest.approx(fleet_size.events_per_s(load, pace((0.0, 0.01))))
    assert fleet_size.events_per_s(load, pace()) is None


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (Load(arrival="poisson", rate=20.0, prompts=Prompts(output_tokens=50)), 1000.0),
        (Load(arrival="poisson", ramp=((0.0, 1.0), (9.0, 30.0)), prompts=Prompts(output_tokens=50)), 1500.0),
        (Load(arrival="poisson", rate=20.0, max_in_flight=3, prompts=Prompts(output_tokens=50)), 300.0),
        (Load(arrival="poisson", rate=20.0, prompts=Prompts(output_tokens="uniform(1,9)")), None),
        (Load(arrival="replay"), None),
    ],
)
def test_events_of_an_open_loop_are_its_highest_rate_times_tokens(load: Load, expected: float | None):
    """Or what the cap on open requests lets through; a length that varies is not guessed at."""
    found = fleet_size.events_per_s(load, pace((0.0, 0.01)))

    assert expected == (found if found is None else pytest.approx(found))


@pytest.mark.parametrize(
    ("content", "most"), [("150000 100000\n", 1), ("200000 100000\n", 2), ("max 100000\n", None)]
)
def test_a_containers_quota_counts_as_cores(tmp_path: Path, content: str, most: int | None):
    """64 visible CPUs of which two may be used are two."""
    (tmp_path / "cpu.max").write_text(content)
    free = fleet_size.cores(tmp_path / "none")

    assert min(free, most or free) == fleet_size.cores(tmp_path / "cpu.max")
