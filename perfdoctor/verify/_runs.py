"""The runs of a trial: both sides driven in turn, or loaded again and again."""

from __future__ import annotations

import msgspec

from perfdoctor import compare, units
from perfdoctor.model import Load, SideName, TriedRun
from perfdoctor.verify import _folder, _loading
from perfdoctor.verify._order import pairs_of, sequence
from perfdoctor.verify._trying import Trying, conduct_run, orders_of, side_up

MOST_S = 30.0  # of a run that is made longer because answers take long
ANSWERS = 4  # at least in a run, and one of each user
MOST_MORE = 3  # pairs made in place of those that cannot be trusted


def drive(trying: Trying) -> None:
    plan = trying.plan
    runs = 2 * plan.pairs + 1
    for number, run in enumerate(sequence(plan.pairs + MOST_MORE, plan.load.seed), 1):
        if run.pair > plan.pairs and len(pairs_of(trying.found.runs)) >= plan.pairs:
            break
        _run(trying, run, f"Run {number} of {max(number, runs)}: {run.side}")


def load_again(trying: Trying) -> None:
    """Both sides were up for their answers; each run starts one again."""
    files, runs = _loading.files_of(trying.plan.scenario.target.model or ""), 2 * trying.plan.pairs + 1
    trying.update(
        load=f"{units.size_bytes(sum(path.stat().st_size for path in files))} of weights, not in memory"
    )
    for number, run in enumerate(sequence(trying.plan.pairs, trying.plan.load.seed), 1):
        trying.bench.stop()
        if (why := _loading.evict(files)) and why not in trying.found.notes:
            trying.update(notes=(*trying.found.notes, why))
        trying.watch.begin(f"Run {number} of {runs}: loading, {run.side}")
        side, _ = trying.bench.use(run.side)
        assert side.patient
        value = _loading.load_s(side.patient.loading)
        trying.update(runs=(*trying.found.runs, msgspec.structs.replace(run, value=value)))


def _long_enough(trying: Trying, name: SideName) -> Load:
    """A run holds a few answers, however slow its side is."""
    load, ledger = trying.plan.load, trying.known[name].ledger
    if load.duration_s is None or ledger is None:
        return load
    answer_s = compare.mean_answer_s(compare.read_run(ledger), False) or 0.0
    least_s = min(MOST_S, max(1.0, ANSWERS / load.concurrency) * answer_s)
    return msgspec.structs.replace(load, duration_s=max(load.duration_s, least_s))


def _run(trying: Trying, run: TriedRun, title: str) -> None:
    side, started = side_up(trying, run.side)
    run = msgspec.structs.replace(run, run=f"{run.side}/{run.pair:02}")
    before = trying.found.runs
    trying.update(runs=(*before, run))
    load = _long_enough(trying, run.side)
    load = msgspec.structs.replace(
        load,
        seed=load.seed + run.pair,  # both sides of a pair are asked the same
        warmup_requests=0 if not started and load.concurrency == 1 else load.warmup_requests,
    )
    trying.watch.begin(title, units.seconds(load.duration_s) if load.duration_s else "")
    conduct_run(trying, side, orders_of(trying, side, load, trying.folder / run.run, "load-test"))
    trying.update(runs=(*before, _folder.judged(run, trying.folder)))
