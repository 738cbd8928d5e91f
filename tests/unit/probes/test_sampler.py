"""Schedule, stamps and the end of a probe: driven by hand, without threads or sleep."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from perfdoctor.model import Sample
from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable
from perfdoctor.probes._sampler import MAX_ERRORS, Budget, Sampler, Schedule, Worker
from perfdoctor.probes._subject import Subject


class HandClock:
    """A clock that moves when told; the worker asks it through `now`."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now(self) -> float:
        return self.at_s


class Scripted:
    """A reader that plays back readings and errors; an `advance` in between costs time."""

    def __init__(self, script: Sequence[object], gaps: Sequence[Gap] = ()) -> None:
        self.script, self.gaps, self.closed = list(script), gaps, False

    def read(self) -> Sequence[Reading]:
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, Callable):  # type: ignore[arg-type]
            step = step()
        if isinstance(step, Exception):
            raise step
        assert isinstance(step, Reading)
        return (step,)

    def close(self) -> None:
        self.closed = True


def worker(reader: Scripted | Exception, clock: HandClock | None = None) -> tuple[Worker, list[Sample]]:
    def open_it(subject: Subject, stop: threading.Event) -> Scripted:
        if isinstance(reader, Exception):
            raise reader
        return reader

    samples: list[Sample] = []
    probe = Probe(name="toy", rate_hz=5.0, max_share=0.01, metrics=(), open=open_it)
    made = Worker(
        probe,
        Subject(),
        clock or HandClock(),  # type: ignore[arg-type]
        samples.append,
        lambda stacks: None,
        5.0,
        threading.Event(),
        Budget(),
        cpu_now=lambda: 0.0,
    )
    made.open()
    return made, samples


READING = Reading({"x": 1.0})


def test_slots_stay_on_the_grid_when_a_read_is_late():
    """Half a slot late does not shift the slots after it."""
    schedule = Schedule(period_s=0.2, max_share=1.0, start_s=10.0)

    schedule.advance(now_s=10.1, cost_s=0.0)

    assert 10.2 == pytest.approx(schedule.due_s)


def test_missed_slots_are_skipped_not_caught_up():
    """After a stall of three slots the next one ahead is due."""
    schedule = Schedule(period_s=0.2, max_share=1.0, start_s=10.0)

    schedule.advance(now_s=10.65, cost_s=0.0)

    assert 10.8 == pytest.approx(schedule.due_s)


@pytest.mark.parametrize(("cost_s", "due_s"), [(0.020, 0.2), (0.028, 1.0), (1.0, 2.2)])
def test_a_costly_probe_is_thinned_out(cost_s, due_s):
    """At a share of 1 % the 20 ms allowance is free, 8 ms more take 0.8 s, and nothing takes over 2 s."""
    schedule = Schedule(period_s=0.2, max_share=0.01, start_s=0.0)

    schedule.advance(now_s=0.1, cost_s=cost_s)

    assert due_s == pytest.approx(schedule.due_s)


def test_in_the_long_run_the_share_is_kept():
    """4 ms a read at 1 %: once the allowance is used up, every second slot."""
    schedule = Schedule(period_s=0.2, max_share=0.01, start_s=0.0)
    reads = 0

    while schedule.due_s < 100.0:
        schedule.advance(schedule.due_s, cost_s=0.004)
        reads += 1

    assert 0.0101 >= reads * 0.004 / 100.0 - 0.02 / 100.0
    assert 0.0095 <= reads * 0.004 / 100.0


@pytest.mark.parametrize(("others", "scale"), [(0.01, 1.0), (0.02, 2 / 3), (0.0, 1.0)])
def test_probes_share_what_they_may_use_together(others: float, scale: float):
    """Of 2 %: 1 % and 1 % fit, 1 % and 2 % each give up a third; one that has ended gives up all."""
    budget = Budget(0.02)

    budget.claim("toy", 0.01)
    budget.claim("other", others)
    found = budget.scale
    budget.release("other")

    assert (scale, 1.0) == pytest.approx((found, budget.scale))


def test_half_a_share_is_half_as_many_readings():
    """8 ms beyond the allowance take 1.6 s at half of 1 %."""
    schedule = Schedule(period_s=0.2, max_share=0.01, start_s=0.0)

    schedule.advance(now_s=0.1, cost_s=0.028, scale=0.5)

    assert 1.8 == pytest.approx(schedule.due_s)


def test_a_sample_carries_its_lateness_and_cost():
    """Taken 0.3 s after its due time, and 0.05 s in the making."""
    clock = HandClock()
    clock.at_s = 1.3

    def slow() -> Reading:
        clock.at_s += 0.05
        return READING

    made, samples = worker(Scripted([slow]), clock)

    made.tick(due_s=1.0)

    assert (0.3, 0.05, 1.35) == pytest.approx((samples[0].late_s, samples[0].took_s, samples[0].at_s))
    assert 0.3 == pytest.approx(made.state().late_max_s)


def test_one_error_costs_one_sample():
    """The sample is stale with the reason, the probe goes on and stays ok."""
    made, samples = worker(Scripted([OSError("gone"), READING]))

    made.tick(0.0)
    made.tick(0.0)

    assert ["stale", "ok"] == [s.status for s in samples]
    assert "OSError: gone" == samples[0].why
    state = made.state()
    assert ("ok", 1, 1) == (state.status, state.errors, state.samples)


def test_errors_in_a_row_end_the_probe():
    """One fewer does not."""
    made, _ = worker(Scripted([READING, *[OSError("gone")] * (MAX_ERRORS - 1), READING]))
    for _ in range(MAX_ERRORS + 1):
        made.tick(0.0)
    failing, _ = worker(Scripted([READING, OSError("gone")]))

    for _ in range(MAX_ERRORS + 1):
        failing.tick(0.0)

    assert "ok" == made.state().status
    assert ("stale", MAX_ERRORS) == (failing.state().status, failing.state().errors)
    assert "5 failed reads in a row" in (failing.state().why or "")


def test_a_denied_read_ends_as_denied():
    """Permission is another cause than a broken file."""
    made, _ = worker(Scripted([PermissionError("no")]))

    for _ in range(MAX_ERRORS):
        made.tick(0.0)

    assert "denied" == made.state().status


def test_nothing_to_read_yet_is_no_error():
    """The probe waits, and reads on once there is something."""
    made, samples = worker(Scripted([NotYet("absent", "no process yet"), READING]))

    made.tick(0.0)

    assert ("absent", "no process yet", 0) == (made.state().status, made.state().why, made.state().errors)

    made.tick(0.0)

    assert ("ok", 1) == (made.state().status, len(samples))


def test_a_last_reading_may_fail_in_silence():
    """The server may be gone by then: no error, no change of the state."""
    made, samples = worker(Scripted([READING, OSError("gone")]))
    made.tick(0.0)

    made.tick(0.0, final=True)

    assert ("ok", 0, 1) == (made.state().status, made.state().errors, len(samples))


def test_a_probe_that_cannot_open_says_why():
    """Its own word for what is missing, or the error of a broken one."""
    absent, _ = worker(Unavailable("unsupported", "no driver", "install it"))
    broken, _ = worker(ValueError("surprise"))

    assert ("unsupported", "no driver", "install it") == (
        absent.state().status,
        absent.state().why,
        absent.state().enable,
    )
    assert "ValueError: surprise" in (broken.state().why or "")


def test_missing_metrics_are_named_in_an_ok_state():
    """The probe works, one of its numbers cannot be had: said with the command that enables it."""
    made, _ = worker(Scripted([READING], gaps=[Gap("delay", "it is off", "sysctl -w x=1")]))

    made.tick(0.0)

    assert ("ok", "no delay: it is off", "sysctl -w x=1") == (
        made.state().status,
        made.state().why,
        made.state().enable,
    )


def test_cost_of_a_helper_process_counts():
    """CPU time of a child belongs to the probe that started it."""
    made, _ = worker(Scripted([Reading({"x": 1.0}, cost_s=0.04)]))

    made.tick(0.0)

    assert 0.04 == pytest.approx(made.state().cost_s)


def test_host_probes_are_unsupported_for_a_remote_server(clock):
    """What this machine does says nothing about a server elsewhere; its own metrics still can be asked."""
    sampler = Sampler(Subject(remote=True), clock, lambda s: None, lambda s: None, {})

    sampler.start()
    states = {s.probe: s for s in sampler.stop()}

    assert {"cpu", "dcgm", "disk", "gil", "gpu", "io", "log", "memory", "numa", "stall"} == {
        name for name, s in states.items() if s.status == "unsupported" and "another host" in (s.why or "")
    }
    assert "absent" == states["engine"].status


def test_a_probe_can_be_switched_off(clock):
    """Rate 0: no thread, no sample, and the state says so."""
    rates = dict.fromkeys(
        ("cpu", "dcgm", "disk", "engine", "gil", "gpu", "health", "io", "log", "memory", "numa", "stall"), 0.0
    )
    sampler = Sampler(Subject(), clock, lambda s: None, lambda s: None, rates)

    sampler.start()

    assert {("absent", "switched off")} == {(s.status, s.why) for s in sampler.stop()}
