"""One level of a calibration: streams driven as any load is, and the stamps of both ends compared."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from perfdoctor import interrupts, latency, stats, trust, units
from perfdoctor.clock import Clock
from perfdoctor.errors import CannotJudge
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver
from perfdoctor.loadgen.stage import Stage
from perfdoctor.model import CalibrationLevel, ClientFacts, Load, Prompts, RequestRecord, Target

GOOD_LAG_S = 0.005  # p99 of an event's lag up to which a level counts as measured rightly
OFFERED = 0.95  # of the pace, that the server must have sent; below it the load was another one
TELL_S = 20.0  # for the server's stamps of a million events


@dataclass(frozen=True, slots=True)
class Sent:
    """What the server says of one stream, in perf_counter_ns."""

    due_ns: Sequence[int]
    sent_ns: Sequence[int]


@dataclass(frozen=True, slots=True)
class Told:
    """What the server says of a level: its streams by request id, and its share of a core."""

    streams: Mapping[int, Sent]
    cpu_share: float | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. It tells what it did once, and ends with that."""

    url: str
    child: subprocess.Popen[bytes]

    def told(self) -> Told:
        said, _ = self.child.communicate(timeout=TELL_S)
        found = json.loads(said)
        streams = {s["id"]: Sent(s["due_ns"], s["sent_ns"]) for s in found["streams"]}
        return Told(streams, found["cpu_share"])


@contextmanager
def serving(tokens_per_s: float) -> Iterator[Server]:
    """The server in a process of its own, so that it shares no interpreter with the driver. 0: unpaced.

    In a session of its own too, or a terminal's Ctrl-C would end it beside us.
    """
    words = [sys.executable, "-m", "perfdoctor.loadgen.calibrate.server", f"{tokens_per_s:g}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, start_new_session=True) as child:
        try:
            assert child.stdout
            port = child.stdout.readline().strip()
            if not port.isdigit():
                raise CannotJudge(
                    "the calibration's own server did not start", "", "run it again with --debug"
                )
            yield Server(f"http://127.0.0.1:{int(port)}", child)
        finally:
            child.kill()


def drive(streams: int, tokens_per_s: float | None, tokens: int) -> CalibrationLevel:
    """So many streams at once, each of so many tokens; then what the two ends say of the same events."""
    clock, records = Clock(), list[RequestRecord]()
    load = Load(concurrency=streams, requests=streams, prompts=Prompts(input_tokens=8, output_tokens=tokens))
    with serving(tokens_per_s or 0) as server:
        facts = loop.run(_drive(Target(endpoint=server.url, served_name="paced"), load, clock, records))
        return compare(streams, tokens_per_s, records, server.told(), clock, facts)


async def _drive(target: Target, load: Load, clock: Clock, records: list[RequestRecord]) -> ClientFacts:
    """Raises KeyboardInterrupt at its end if one was asked for: inside a callback it could get lost."""
    async with Driver(target, load, clock, records.append) as driver:
        running, asked = asyncio.get_running_loop(), asyncio.Event()

        def stop() -> None:
            asked.set()
            interrupts.note()
            driver.request_stop()
            driver.request_stop()  # the second cancels what is open

        with interrupts.kept():
            for number in interrupts.heeded():
                running.add_signal_handler(number, stop)
            try:
                await driver.run_stage(Stage("steady", load.concurrency, requests=load.requests))
            finally:
                for number in interrupts.heeded():
                    running.remove_signal_handler(number)
        if asked.is_set():
            raise KeyboardInterrupt
        return driver.client_facts()


def compare(
    streams: int,
    tokens_per_s: float | None,
    records: Sequence[RequestRecord],
    told: Told,
    clock: Clock,
    facts: ClientFacts,
) -> CalibrationLevel:
    """Events in order are the same events; a stream that failed has lost what the server sent on it."""
    lags: list[float] = []
    ttft_errors: list[float] = []
    tpot_errors: list[float] = []
    sent = {number: [clock.at(stamp) for stamp in one.sent_ns] for number, one in told.streams.items()}
    for record in records:
        theirs = sent.get(record.id, [])
        pairs = list(zip(record.token_at_s, theirs, strict=False))
        lags += [ours - their for ours, their in pairs]
        if pairs:
            ttft_errors.append(pairs[0][0] - pairs[0][1])
        pace = latency.tpot(record)
        if pace is not None and len(theirs) > 1:
            tpot_errors.append(abs(pace - (theirs[-1] - theirs[0]) / (len(theirs) - 1)))
    late = [
        (s - d) / 1e9 for one in told.streams.values() for s, d in zip(one.sent_ns, one.due_ns, strict=False)
    ]
    offered, received = _rates(list(sent.values()), [r.token_at_s for r in records], tokens_per_s is not None)
    level = CalibrationLevel(
        streams=streams,
        tokens_per_s=tokens_per_s,
        events=len(lags),
        lost=sum(map(len, sent.values())) - len(lags),
        offered_per_s=offered,
        events_per_s=received,
        lag_p50_s=stats.percentile(lags, 0.5),
        lag_p99_s=stats.percentile(lags, 0.99),
        lag_max_s=max(lags, default=None),
        server_late_p99_s=stats.percentile(late, 0.99) if tokens_per_s else None,
        ttft_error_p99_s=stats.percentile(ttft_errors, 0.99),
        tpot_error_p99_s=stats.percentile(tpot_errors, 0.99),
        cpu_share=facts.cpu_share,
        cpu_per_event_s=_cpu_per_event(facts, _span(records), len(lags)),
        server_cpu_share=told.cpu_share,
        trust=trust.judge(facts, records).status,
    )
    return _limited(level)


def _rates(
    sent: Sequence[Sequence[float]], stamped: Sequence[Sequence[float]], paced: bool
) -> tuple[float | None, float | None]:
    """Events a second that left the server and that were stamped here, of a pace while all streams were open.

    Before and after that it is another, smaller load. None where there is no such time.
    """
    ours = [at for at in stamped if at]
    if not ours or not all(sent):
        return None, None
    first, last = [at[0] for at in (*sent, *ours)], [at[-1] for at in (*sent, *ours)]
    start, end = (max(first), min(last)) if paced else (min(first), max(last))
    if end <= start:
        return None, None

    def rate(of: Sequence[Sequence[float]]) -> float:
        return sum(start < at <= end for one in of for at in one) / (end - start)

    return rate(sent), rate(ours)


def _span(records: Sequence[RequestRecord]) -> float:
    sent = [r.sent_s for r in records if r.sent_s is not None]
    ended = [r.end_s for r in records if r.end_s is not None]
    return max(ended, default=0.0) - min(sent, default=0.0)


def _cpu_per_event(facts: ClientFacts, span_s: float, events: int) -> float | None:
    return facts.cpu_share * span_s / events if facts.cpu_share is not None and events else None


def _limited(level: CalibrationLevel) -> CalibrationLevel:
    """Whose limit a level met. A server that was late sends in bursts, and no client could mend that; one
    that was late and did no harm is no limit. An unpaced level meets the limit of whoever is busier.
    """
    import msgspec

    lag, late, offered = level.lag_p99_s, level.server_late_p99_s or 0.0, level.offered_per_s
    limit, reason = "none", ""
    if level.tokens_per_s is None:
        ours, theirs = level.cpu_share or 0.0, level.server_cpu_share or 0.0
        limit = "client" if ours >= theirs else "server"
        reason = f"client {units.share(ours)} of a core, server {units.share(theirs)}"
    elif level.lost or lag is None:
        limit, reason = "client", f"{level.lost} of {level.events + level.lost} events are in no record"
    elif lag > GOOD_LAG_S and late > GOOD_LAG_S:
        limit, reason = "server", f"the paced server itself was {units.seconds(late)} late at p99"
    elif lag > GOOD_LAG_S:
        limit, reason = "client", f"events were stamped {units.seconds(lag)} late at p99"
    elif offered is not None and offered < OFFERED * level.streams * level.tokens_per_s:
        limit, reason = "server", f"the paced server sent no more than {units.number(offered)} events/s"
    return msgspec.structs.replace(level, limit=limit, reason=reason)
