"""One level of a calibration: streams driven as any load is, and the stamps of both ends compared."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from perfdoctor import latency, stats, trust, units
from perfdoctor.clock import Clock
from perfdoctor.errors import CannotJudge
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver
from perfdoctor.loadgen.stage import Stage
from perfdoctor.model import CalibrationLevel, ClientFacts, Load, Prompts, RequestRecord, Target

GOOD_LAG_S = 0.005  # p99 of an event's lag up to which a level counts as measured rightly
SETTLE_S = 0.5  # after the last answer: the server's last lines are on their way


@dataclass(frozen=True, slots=True)
class Sent:
    """What the server says of one stream, in perf_counter_ns."""

    due_ns: Sequence[int]
    sent_ns: Sequence[int]


@dataclass(slots=True)
class Server:
    """A running server; `streams` fills as they finish."""

    url: str
    streams: dict[int, Sent] = field(default_factory=dict)


@contextmanager
def serving(tokens_per_s: float) -> Iterator[Server]:
    """The paced server in a process of its own, so that it shares no interpreter with the driver."""
    words = [sys.executable, "-m", "perfdoctor.loadgen.calibrate.server", f"{tokens_per_s:g}"]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdin is not None
    try:
        port = child.stdout.readline().strip()
        if not port.isdigit():
            raise CannotJudge("the calibration's own server did not start", "", "run it again with --debug")
        server = Server(f"http://127.0.0.1:{int(port)}")
        reader = threading.Thread(target=_collect, args=(child.stdout, server), daemon=True)
        reader.start()
        yield server
    finally:
        child.stdin.close()
        try:
            child.wait(timeout=2)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _collect(lines: Iterator[bytes], server: Server) -> None:
    for line in lines:
        told = json.loads(line)
        server.streams[told["id"]] = Sent(told["due_ns"], told["sent_ns"])


def drive(streams: int, tokens_per_s: float, seconds: float) -> CalibrationLevel:
    """So many streams at once, each of so many seconds; then what the two ends say of the same events."""
    tokens = max(2, round(tokens_per_s * seconds))
    clock, records = Clock(), list[RequestRecord]()
    with serving(tokens_per_s) as server:
        load = Load(
            concurrency=streams,
            requests=streams,
            prompts=Prompts(input_tokens=8, output_tokens=tokens),
            timeout_s=seconds * 4 + 30,
        )
        facts = loop.run(_drive(Target(endpoint=server.url, served_name="paced"), load, clock, records))
        ends_s = time.monotonic() + SETTLE_S
        while len(server.streams) < len(records) and time.monotonic() < ends_s:
            time.sleep(0.02)
        return compare(streams, tokens_per_s, records, server.streams, clock, facts)


async def _drive(target: Target, load: Load, clock: Clock, records: list[RequestRecord]) -> ClientFacts:
    async with Driver(target, load, clock, records.append) as driver:
        await driver.run_stage(Stage("steady", load.concurrency, requests=load.requests))
        return driver.client_facts()


def compare(
    streams: int,
    tokens_per_s: float,
    records: Sequence[RequestRecord],
    told: Mapping[int, Sent],
    clock: Clock,
    facts: ClientFacts,
) -> CalibrationLevel:
    """Events in order are the same events; a stream that failed has lost what the server sent on it."""
    lags: list[float] = []
    ttft_errors: list[float] = []
    tpot_errors: list[float] = []
    sent_events = 0
    for record in records:
        sent = told.get(record.id)
        if sent is None:
            continue
        theirs = [clock.at(stamp) for stamp in sent.sent_ns]
        sent_events += len(theirs)
        pairs = list(zip(record.token_at_s, theirs, strict=False))
        lags += [ours - their for ours, their in pairs]
        if pairs:
            ttft_errors.append(pairs[0][0] - pairs[0][1])
        pace = latency.tpot(record)
        if pace is not None and len(theirs) > 1:
            tpot_errors.append(abs(pace - (theirs[-1] - theirs[0]) / (len(theirs) - 1)))
    late = [(s - d) / 1e9 for sent in told.values() for s, d in zip(sent.sent_ns, sent.due_ns, strict=True)]
    span_s = _span(records)
    judged = trust.judge(facts, records)
    level = CalibrationLevel(
        streams=streams,
        tokens_per_s=tokens_per_s,
        events=len(lags),
        lost=sent_events - len(lags),
        events_per_s=len(lags) / span_s if span_s else None,
        lag_p50_s=stats.percentile(lags, 0.5),
        lag_p99_s=stats.percentile(lags, 0.99),
        lag_max_s=max(lags, default=None),
        server_late_p99_s=stats.percentile(late, 0.99),
        ttft_error_p99_s=stats.percentile(ttft_errors, 0.99),
        tpot_error_p99_s=stats.percentile(tpot_errors, 0.99),
        cpu_share=facts.cpu_share,
        cpu_per_event_s=_cpu_per_event(facts, span_s, len(lags)),
        trust=judged.status,
    )
    return _limited(level, streams * max(2, len(records) and len(records[0].token_at_s)))


def _span(records: Sequence[RequestRecord]) -> float:
    sent = [r.sent_s for r in records if r.sent_s is not None]
    ended = [r.end_s for r in records if r.end_s is not None]
    return max(ended, default=0.0) - min(sent, default=0.0)


def _cpu_per_event(facts: ClientFacts, span_s: float, events: int) -> float | None:
    return facts.cpu_share * span_s / events if facts.cpu_share is not None and events else None


def _limited(level: CalibrationLevel, expected: int) -> CalibrationLevel:
    """Whose limit a level met: the server's first, since a late server is nothing a client could mend."""
    import msgspec

    lag, late = level.lag_p99_s, level.server_late_p99_s
    limit, reason = "none", ""
    if late is not None and late > GOOD_LAG_S:
        limit, reason = "server", f"the paced server itself was {units.seconds(late)} late at p99"
    elif level.lost or lag is None:
        limit, reason = "client", f"{level.lost} of {expected} events are in no record"
    elif lag > GOOD_LAG_S:
        limit, reason = "client", f"events were stamped {units.seconds(lag)} late at p99"
    return msgspec.structs.replace(level, limit=limit, reason=reason)
