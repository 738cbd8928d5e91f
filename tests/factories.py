"""Small records with sensible defaults, so that a test spells out only what it is about.

Numbers are round: one request takes 0.1 s to its first token and 1 s of decoding for 11 tokens, so its TPOT
is 0.1 s and it is over after 1.1 s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perfdoctor.model import (
    ClientFacts,
    GpuFacts,
    HostFacts,
    Load,
    Phase,
    PhaseName,
    ProbeState,
    RequestRecord,
    RunFacts,
    Sample,
    Scenario,
    TargetFacts,
)

QUIET_CLIENT = ClientFacts(
    cpu_share=0.05, loop_lag_p50_s=0.0001, loop_lag_p99_s=0.001, send_late_p99_s=0.001, runq_wait_share=0.01
)
H200 = GpuFacts(index=0, name="NVIDIA H200", memory_bytes=141_000_000_000, gpm=True)


def request(
    id: int = 0,
    sent_s: float = 0.0,
    ttft_s: float = 0.1,
    decode_s: float = 1.0,
    phase: PhaseName = "steady",
    **changes: Any,
) -> RequestRecord:
    """A successful streamed answer of 11 tokens on a kept connection."""
    first, last = sent_s + ttft_s, sent_s + ttft_s + decode_s
    fields: dict[str, Any] = {
        "due_s": sent_s,
        "sent_s": sent_s,
        "headers_s": sent_s,
        "first_token_s": first,
        "last_token_s": last,
        "end_s": last,
        "token_at_s": tuple(first + decode_s * i / 10 for i in range(11)),
        "prompt_tokens": 48,
        "output_tokens": 11,
        "token_source": "usage",
        "status": 200,
        "reused": True,
    }
    return RequestRecord(id=id, phase=phase, **(fields | changes))


def serial_requests(
    n: int, service_s: float = 1.1, users: int = 4, start_s: float = 20.0, ttft_s: float = 0.1
) -> list[RequestRecord]:
    """`users` in a closed loop before a server that handles one request at a time, in order of arrival."""
    free_at = start_s
    sent = [start_s] * users
    found = []
    for i in range(n):
        at = sent[i % users]
        begin = max(at, free_at)
        free_at = begin + service_s
        found.append(request(i, at, begin - at + ttft_s, service_s - ttft_s))
        sent[i % users] = free_at
    return found


def parallel_requests(
    n: int, users: int = 4, start_s: float = 20.0, ttft_s: float = 0.1, decode_s: float = 1.0
) -> list[RequestRecord]:
    """`users` in a closed loop before a server that serves all of them at once, as fast as one alone."""
    whole = ttft_s + decode_s
    return [request(i, start_s + (i // users) * whole, ttft_s, decode_s) for i in range(n)]


def baseline_requests(
    n: int = 3, start_s: float = 10.0, ttft_s: float = 0.1, decode_s: float = 1.0
) -> list[RequestRecord]:
    """One at a time, before the load."""
    whole = ttft_s + decode_s
    return [request(1000 + i, start_s + i * whole, ttft_s, decode_s, phase="baseline") for i in range(n)]


def sample(probe: str, at_s: float, labels: dict[str, str] | None = None, **values: float | None) -> Sample:
    return Sample(at_s=at_s, probe=probe, values=dict(values), labels=labels or {})


def gauges(
    probe: str,
    start_s: float = 20.0,
    end_s: float = 60.0,
    labels: dict[str, str] | None = None,
    every_s: float = 0.2,
    **values: float | None,
) -> list[Sample]:
    """The same reading over and over."""
    count = round((end_s - start_s) / every_s) + 1
    return [sample(probe, start_s + i * every_s, labels, **values) for i in range(count)]


def counters(
    probe: str,
    start_s: float = 20.0,
    end_s: float = 60.0,
    labels: dict[str, str] | None = None,
    every_s: float = 0.2,
    **rates: float,
) -> list[Sample]:
    """Counters that grow by `rates` per second from 100."""
    count = round((end_s - start_s) / every_s) + 1
    return [
        sample(probe, start_s + i * every_s, labels, **{k: 100 + r * i * every_s for k, r in rates.items()})
        for i in range(count)
    ]


def serving_thread(
    oncpu: float, waiting: float = 0.0, start_s: float = 20.0, end_s: float = 60.0
) -> list[Sample]:
    """One thread of the server that is on a CPU and in the run queue for these shares of the time."""
    labels = {"pid": "1", "tid": "1", "name": "serve"}
    return counters("cpu.thread", start_s, end_s, labels, oncpu_s=oncpu, runq_wait_s=waiting)


def load_samples(start_s: float = 0.0, **phases: float) -> list[Sample]:
    """Load telemetry: `import_` stands for import; phases follow each other, and the total ends the list."""
    found, at = [], start_s
    for name, seconds in phases.items():
        found.append(sample("load", at, {"phase": name.rstrip("_")}, started_s=at, seconds=seconds))
        at += seconds
    return [*found, sample("load", at, {"phase": "total"}, started_s=start_s, seconds=at - start_s)]


def served(
    record: RequestRecord, queue_s: float = 0.0, tokenise_s: float = 0.0, wire_s: float = 0.0
) -> Sample:
    """The server's own stamps of a request, `wire_s` away from the client's at both ends."""
    assert record.sent_s is not None and record.first_token_s is not None and record.last_token_s is not None
    arrived = record.sent_s + wire_s
    return sample(
        "serve",
        record.last_token_s,
        {"request": str(record.id)},
        arrived_s=arrived,
        started_s=arrived + queue_s,
        tokenised_s=arrived + queue_s + tokenise_s,
        first_token_s=record.first_token_s - wire_s,
        last_token_s=record.last_token_s - wire_s,
        done_s=record.last_token_s - wire_s,
    )


def facts(
    concurrency: int = 4,
    steady: tuple[float, float] | None = (20.0, 60.0),
    baseline: tuple[float, float] | None = (10.0, 20.0),
    target: TargetFacts | None = None,
    gpus: tuple[GpuFacts, ...] = (),
    probes: Iterable[ProbeState] = (),
    **changes: Any,
) -> RunFacts:
    """A complete run with a baseline from 10 to 20 s and a steady phase from 20 to 60 s."""
    phases = []
    if baseline:
        phases.append(Phase(name="baseline", start_s=baseline[0], end_s=baseline[1], concurrency=1))
    if steady:
        phases.append(Phase(name="steady", start_s=steady[0], end_s=steady[1], concurrency=concurrency))
    fields: dict[str, Any] = {
        "run": "a-run",
        "state": "complete",
        "scenario": Scenario(load=Load(concurrency=concurrency)),
        "target": target or TargetFacts(kind="endpoint", url="http://127.0.0.1:8000"),
        "host": HostFacts(hostname="here", cores=2, gpus=gpus),
        "client": QUIET_CLIENT,
        "phases": tuple(phases),
        "probes": tuple(probes),
    }
    return RunFacts(**(fields | changes))


def local_target(device: str = "cpu", **changes: Any) -> TargetFacts:
    """A local model of 1 GB a step that is served one request at a time."""
    fields: dict[str, Any] = {
        "kind": "local",
        "url": "http://127.0.0.1:9000",
        "engine": "perfdoctor-local",
        "model": "tiny",
        "device": device,
        "dtype": "float32",
        "weights_bytes": 1_000_000_000,
        "step_bytes": 1_000_000_000,
        "file_bytes": 1_000_000_000,
        "file_resident_share": 0.0,
        "max_batch": 1,
    }
    return TargetFacts(**(fields | changes))
