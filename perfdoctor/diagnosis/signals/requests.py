"""What the client saw: latencies, rates and how both moved when the load grew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from perfdoctor import latency, stats
from perfdoctor.diagnosis import counted
from perfdoctor.diagnosis.measure import Measure, Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, ratio
from perfdoctor.model import RequestRecord

LONG = 30  # chunks of an answer whose course can be told

Quantity = Callable[[RequestRecord], "float | None"]
Compared = Literal["steady", "baseline"]

_QUANTITIES: dict[str, Quantity] = {"ttft": latency.ttft, "tpot": latency.tpot, "e2e": latency.e2e}
_STATISTICS: dict[str, Callable[[list[float]], float | None]] = {
    "mean": stats.mean,
    "p50": lambda values: stats.percentile(values, 0.50),
    "p95": lambda values: stats.percentile(values, 0.95),
}


def _latency(quantity: str, phase: Compared, statistic: str) -> Measure:
    def compute(obs: Observations) -> Reading:
        obs.phase(phase)
        values = latency.present(_QUANTITIES[quantity](r) for r in obs.ok(phase))
        found = _STATISTICS[statistic](values)
        if found is None:
            raise NoValue(f"no {phase} request has a {quantity}")
        return Reading(found, n=len(values))

    page = (
        f"{statistic} of {quantity} over the {phase} phase, in seconds: {latency.DEFINITIONS[quantity]}.\n\n"
        "Missing when no request of the phase reached it. Cross-check: `curl -N` one request."
    )
    return Measure(f"{quantity}.{phase}.{statistic}", "s", compute, page)


@signal("drive.concurrency", unit="users")
def concurrency(obs: Observations) -> float:
    """Users of the closed loop in the steady phase, each with one request open. Cross-check: `-c`.

    Where the traffic of others was watched, the requests inside the server by its gauges.
    """
    obs.phase("steady")
    if counted.watches(obs):
        return sum(counted.inside(obs))
    return obs.concurrency("steady")


@signal("drive.seconds", unit="s")
def seconds(obs: Observations) -> float:
    """Length of the steady phase, in seconds. Missing when the run never got there."""
    return obs.phase("steady").seconds


@signal("drive.requests", unit="requests")
def requests(obs: Observations) -> float:
    """Complete, successful requests of the steady phase: what every percentile rests on.

    Where the traffic of others was watched, the requests that the server finished meanwhile.
    """
    return counted.requests(obs) if counted.watches(obs) else len(obs.ok("steady"))


@signal("drive.in_flight.mean", unit="requests")
def in_flight(obs: Observations) -> float:
    """Requests open at a time, averaged over the steady phase: summed open time over its length.

    Missing without a steady phase. Cross-check: throughput x mean latency (Little's law).
    """
    window = obs.phase("steady")
    spans = _open_spans(obs)
    return sum(min(b, window.end_s) - max(a, window.start_s) for a, b in spans) / window.seconds


@signal("drive.busy.share", unit="share")
def busy(obs: Observations) -> float:
    """Share of the steady phase with at least one request open; the rest, the server had nothing to do."""
    window = obs.phase("steady")
    if counted.watches(obs):
        running = counted.gauge(obs, "running")
        return sum(value > 0 for value in running) / len(running)
    covered, reached = 0.0, window.start_s
    for sent, done in sorted(_open_spans(obs)):
        start, end = max(sent, reached), min(done, window.end_s)
        if end > start:
            covered, reached = covered + end - start, end
    return covered / window.seconds


def _open_spans(obs: Observations) -> list[tuple[float, float]]:
    """[sent, done] of every steady request that overlaps the phase, failed ones included."""
    window = obs.phase("steady")
    found = []
    for r in obs.requests:
        end = r.end_s if r.end_s is not None else r.last_token_s
        if r.phase == "steady" and r.sent_s is not None:
            span = r.sent_s, window.end_s if end is None else end
            if span[1] > window.start_s and span[0] < window.end_s:
                found.append(span)
    if not found:
        raise NoValue("no request was sent in the steady phase")
    return found


def _throughput(phase: Compared) -> Measure:
    def compute(obs: Observations) -> Reading:
        obs.phase(phase)
        records = [r for r in obs.ok(phase) if r.sent_s is not None and r.last_token_s is not None]
        sent = latency.present(r.sent_s for r in records)
        last = latency.present(r.last_token_s for r in records)
        tokens = [r.output_tokens or len(r.token_at_s) for r in records]
        if not records or max(last) <= min(sent):
            raise NoValue(f"no complete request in the {phase} phase")
        if not sum(tokens):
            raise NoValue("the answers' tokens were not counted")
        return Reading(sum(tokens) / (max(last) - min(sent)), n=len(records))

    page = (
        f"Output tokens per second of the {phase} phase, from the first request sent to the last token seen. "
        "Only complete requests count. Missing without one. Cross-check: the server's own token counter."
    )
    return Measure(f"throughput.{phase}", "tokens/s", compute, page)


STEADY_THROUGHPUT, BASELINE_THROUGHPUT = _throughput("steady"), _throughput("baseline")
STEADY_E2E, BASELINE_E2E = _latency("e2e", "steady", "p50"), _latency("e2e", "baseline", "p50")
STEADY_TPOT = _latency("tpot", "steady", "mean")


@signal("throughput.scaling", unit="x")
def scaling(obs: Observations) -> Reading:
    """Throughput under load over throughput of one request at a time; 1 means that users wait in line.

    An experiment, not a reading: it needs the baseline phase and more than one user. Cross-check:
    `perfdoctor load-test -c 1` and `-c 4`.
    """
    if obs.concurrency("steady") < 2:
        raise NoValue("the steady phase had one user, so there is nothing to compare")
    share = ratio(STEADY_THROUGHPUT.of(obs), BASELINE_THROUGHPUT.of(obs), "the baseline's throughput")
    return Reading(share, n=len(obs.ok("baseline")))


@signal("decode.growth", unit="x")
def growth(obs: Observations) -> Reading:
    """How much longer a chunk takes late in an answer than early in it: last third over first third, medians.

    Near 1 with a KV cache, since a token then costs the same wherever it stands, attention over some thousand
    tokens aside. Missing without answers of thirty chunks. Cross-check: `curl -N` a long answer.
    """
    found = []
    for record in obs.ok("steady"):
        gaps = latency.gaps(record)
        third = len(gaps) // 3
        if len(gaps) >= LONG:
            early, late = stats.percentile(gaps[:third], 0.5), stats.percentile(gaps[-third:], 0.5)
            if early and late:
                found.append(late / early)
    if not found:
        raise NoValue(f"no answer has more than {LONG} chunks")
    return Reading(stats.percentile(found, 0.5) or 0.0, n=len(found))


@signal("latency.stretch", unit="x")
def stretch(obs: Observations) -> float:
    """Median request time under load over that of one request at a time; 1 means that load costs nothing."""
    return ratio(STEADY_E2E.of(obs), BASELINE_E2E.of(obs), "the baseline's request time")


SIGNALS = (
    concurrency,
    seconds,
    requests,
    in_flight,
    busy,
    STEADY_E2E,
    BASELINE_E2E,
    STEADY_TPOT,
    *(
        _latency(quantity, phase, statistic)
        for quantity in _QUANTITIES
        for phase in ("steady", "baseline")
        for statistic in _STATISTICS
        if (quantity, phase, statistic)
        not in {("e2e", "steady", "p50"), ("e2e", "baseline", "p50"), ("tpot", "steady", "mean")}
    ),
    STEADY_THROUGHPUT,
    BASELINE_THROUGHPUT,
    scaling,
    growth,
    stretch,
)
