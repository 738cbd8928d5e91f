"""The phases of load, in order, and what a Ctrl-C does to them.

warm-up -> baseline (one at a time) -> steady -> experiments (diagnose) -> profile (local model only)

A baseline needs an idle server, so a warm-up before it ends with its last answer. Otherwise the warm-up is
the beginning of the steady load and hands over while requests are open: an idle server would meet a burst
that the load never has again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from perfdoctor import experiments, interrupts, store
from perfdoctor.clock import Clock
from perfdoctor.errors import ServerDied
from perfdoctor.loadgen.fleet import Driving, make_driver
from perfdoctor.loadgen.stage import Stage
from perfdoctor.local.launch import LocalServer
from perfdoctor.local.patient import Patient
from perfdoctor.model import Load, Phase, PhaseName, Scenario
from perfdoctor.progress import Watch

TICK_S = 0.25
MIN_STEADY_REQUESTS = 12  # a slow model gets more time until this many have a chance to finish
MAX_STEADY_S = 180.0
BASELINE_S = 2.0  # a fast server gets more than the few requests asked for, so that its pace is no accident
MAX_BASELINE_REQUESTS = 60
PROFILED_STEPS = 16
# Tokens: so few that a chunk which is none of them shows (latency.without_prompt_tail).
SHORT_ANSWERS = (2, 2)


@dataclass(frozen=True, slots=True)
class Orders:
    """What the command line asked for, beyond the scenario."""

    scenario: Scenario
    command: str
    argv: tuple[str, ...] = ()
    out: Path | None = None
    secret: str | None = None
    probes: bool = True
    prefix: tuple[str, ...] = ()  # put before the local child's command line (a fault to inject)
    patient: Patient | None = None  # a local server that is up already, and stays up


@dataclass(slots=True)
class Conduct:
    """The state of one run while it is being made."""

    orders: Orders
    watch: Watch
    clock: Clock = field(default_factory=Clock)
    phases: list[Phase] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    server: LocalServer | None = None
    interrupted: bool = False


async def drive(run: Conduct, writer: store.RunWriter, load: Load) -> None:
    """All phases, each written to run.json as it ends. Raises what made the target undrivable."""
    target = writer.facts.scenario.target
    secret, workers = run.orders.secret, load.workers
    driver = make_driver(target, load, run.clock, writer.append_request, secret, workers)
    with _interrupts(run, driver):  # the start of several processes takes long enough for a Ctrl-C
        async with driver:
            async for stage, title in _stages(run, load):
                await _run_stage(run, writer, driver, stage, title)
                if run.interrupted or driver.aborted or driver.over:
                    break
        run.notes += driver.notes
        writer.update(client=driver.client_facts(), stopped=driver.stopped)
        if driver.aborted and not run.interrupted:
            raise driver.aborted


async def _stages(run: Conduct, load: Load) -> AsyncIterator[tuple[Stage, str]]:
    """The phases in order. The steady phase's length is chosen after the baseline has shown the pace."""
    shows_tokens = run.orders.scenario.target.api != "http" and run.orders.scenario.target.stream
    short = SHORT_ANSWERS if shows_tokens and load.warmup_requests else ()
    before = load.warmup_requests if load.baseline_requests else 0
    if before or short:
        yield Stage("warmup", 1, requests=before, first_tokens=short), "Warming up"
    if load.baseline_requests:
        yield Stage("baseline", 1, requests=_baseline(run, load)), "Baseline, one request at a time"
    yield _steady(run, load)
    if run.orders.probes:
        pace_s = _pace(run, "baseline", _baseline(run, load))
        for found in experiments.plan(run.orders.scenario, pace_s):
            yield found
    if run.server and run.orders.probes:
        headers = {"X-Perfdoctor-Profile": str(PROFILED_STEPS)}
        asked = load.prompts.output_tokens
        tokens = max(asked if isinstance(asked, int) else 0, 3 * PROFILED_STEPS)
        stage = Stage("profile", 1, requests=1, headers=headers, output_tokens=tokens)
        yield stage, "Profiling a few decode steps"


def _steady(run: Conduct, load: Load) -> tuple[Stage, str]:
    """A trace is replayed whole, so its first requests are no warm-up unless a time is given for it."""
    closed = load.arrival == "closed"
    leads = not load.baseline_requests and load.arrival != "replay"
    stage = Stage(
        "steady",
        load.concurrency if closed else None,
        requests=load.requests,
        duration_s=_steady_duration(run, load),
        lead_requests=load.warmup_requests if leads else 0,
        lead_s=load.warmup_s,
        ramp_up_s=load.ramp_up_s,
    )
    return stage, f"Load, {load.concurrency} at a time" if closed else f"Load, {_asked(load)}"


def _asked(load: Load) -> str:
    """An open loop in a word or two: `poisson arrivals at 5/s`."""
    if load.arrival == "replay":
        return "replay of a trace"
    if load.ramp:
        rates = [rate for _, rate in load.ramp]
        return f"{load.arrival} arrivals, {min(rates):g} to {max(rates):g}/s"
    return f"{load.arrival} arrivals at {load.rate:g}/s"


def _baseline(run: Conduct, load: Load) -> int:
    """About two seconds' worth at the pace of the warm-up, never fewer than asked for."""
    pace_s = _pace(run, "warmup", load.warmup_requests)
    enough = int(BASELINE_S / pace_s) if pace_s else 0
    return max(load.baseline_requests, min(enough, MAX_BASELINE_REQUESTS))


def _pace(run: Conduct, name: PhaseName, requests: int) -> float | None:
    """Seconds a request took in a phase of one user; None when there was none."""
    phase = next((p for p in run.phases if p.name == name), None)
    return (phase.end_s - phase.start_s) / requests if phase and requests else None


def _steady_duration(run: Conduct, load: Load) -> float | None:
    """Long enough for a dozen answers at the pace of the baseline, up to three minutes."""
    pace_s = _pace(run, "baseline", _baseline(run, load))
    if load.duration_s is None or load.requests is not None or pace_s is None:
        return load.duration_s
    return min(MAX_STEADY_S, max(load.duration_s, MIN_STEADY_REQUESTS * pace_s))


async def _run_stage(
    run: Conduct, writer: store.RunWriter, driver: Driving, stage: Stage, title: str
) -> None:
    run.watch.begin(title, _length(stage))
    begun_s = run.clock.now()
    task = asyncio.create_task(driver.run_stage(stage))
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=TICK_S)
            run.watch.tick(driver.snapshot())
            writer.check()
            if run.server and not run.server.alive() and not task.done():
                raise ServerDied(
                    "the local model server died while it was being measured",
                    "It crashed or was killed, often by the out-of-memory killer.",
                    "read its last words in log.txt of the run folder, and `dmesg | grep -i oom`",
                )
    except BaseException:
        driver.request_stop()
        driver.request_stop()
        await asyncio.wait({task}, timeout=5)
        raise
    phase = task.result()
    if stage.lead_requests or stage.lead_s:
        lead = msgspec.structs.replace(phase, name="warmup", start_s=begun_s, end_s=phase.start_s)
        run.phases.append(lead)
    run.phases.append(phase)
    writer.update(phases=tuple(run.phases))


def _length(stage: Stage) -> str:
    """How long a stage will take, as far as its orders tell."""
    lead = f"{stage.lead_s:.0f} s warm-up, then " if stage.lead_s else ""
    if stage.duration_s:
        return f"{lead}{stage.duration_s:.0f} s"
    requests = None if stage.requests is None else stage.requests + len(stage.first_tokens)
    return f"{lead}{requests} requests" if requests else f"{lead}until its end"


@contextlib.contextmanager
def _interrupts(run: Conduct, driver: Driving) -> Iterator[None]:
    """First signal: finish what is open and seal. Second: cancel it."""
    running = asyncio.get_running_loop()

    def stop() -> None:
        first, run.interrupted = not run.interrupted, True
        driver.request_stop()
        interrupts.note()
        if first:
            run.watch.note("Stopping: open requests may finish. Ctrl-C again cancels them.")

    signals = interrupts.heeded()
    with interrupts.kept():
        for number in signals:
            running.add_signal_handler(number, stop)
        try:
            yield
        finally:
            for number in signals:
                running.remove_signal_handler(number)
