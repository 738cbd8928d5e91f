"""Bundles for the report tests: two causes found, healthy, untrusted, and a run killed before it began."""

from __future__ import annotations

import math

import msgspec

from perfdoctor.latency import STAGES
from perfdoctor.model import (
    Arrivals,
    ClientFacts,
    Diagnosis,
    Evidence,
    Finding,
    FixOffer,
    HostFacts,
    Interval,
    LawState,
    Ledger,
    LedgerRow,
    Load,
    LoadSummary,
    Measured,
    Phase,
    ProbeState,
    Rates,
    RequestCounts,
    RequestRecord,
    Roof,
    RuleState,
    RunFacts,
    Sample,
    Scenario,
    ServerView,
    Signal,
    SloResult,
    SloTerm,
    Spread,
    StyleRow,
    TargetFacts,
    TokenCounts,
    Trust,
    Verdict,
    Violation,
)
from perfdoctor.reports._bundle import Bundle

PHASES = (
    Phase(name="load", start_s=0.0, end_s=6.0),
    Phase(name="warmup", start_s=6.0, end_s=8.0, concurrency=1),
    Phase(name="baseline", start_s=8.0, end_s=12.0, concurrency=1),
    Phase(name="steady", start_s=12.0, end_s=28.0, concurrency=4),
)
FACTS = RunFacts(
    perfdoctor="0.1.0",
    run="20261130-221500-diagnose",
    argv=("perfdoctor", "diagnose", "--model", "tiny"),
    state="complete",
    wall_zero="2026-11-30T22:15:00.000+00:00",
    scenario=Scenario(load=Load(concurrency=4, requests=40)),
    target=TargetFacts(
        kind="local",
        url="http://127.0.0.1:38211",
        engine="transformers",
        engine_version="5.24.0",
        model="shape:deepseek-r1-distill-qwen-1.5b",
        weights_random=True,
        parameters=1_777_088_000,
        dtype="bfloat16",
        device="cuda:0",
    ),
    host=HostFacts(
        hostname="box", kernel="6.1.0", cpu="Xeon 8480", cores=16, memory_bytes=128 * 2**30, python="3.11.2"
    ),
    client=ClientFacts(cpu_share=0.04, loop_lag_p99_s=0.0038, send_late_p99_s=0.0012),
    phases=PHASES,
    probes=(
        ProbeState(probe="cpu", status="ok", cost_s=0.11, late_max_s=0.004, samples=280),
        ProbeState(probe="gpu", status="ok", cost_s=0.05, late_max_s=0.002, samples=140),
        ProbeState(
            probe="gil",
            status="denied",
            why="the kernel forbids reading another process's memory (ptrace_scope = 1)",
            enable="sudo sysctl kernel.yama.ptrace_scope=0",
        ),
    ),
    calibration={"copy_bytes_per_s": 21.4e9, "gpu_copy_bytes_per_s": 3.9e12},
)


def spread(middle_s: float, n: int) -> Spread:
    """A plausible table row around a median; p99 only where n allows it."""
    return Spread(
        n=n,
        mean=middle_s * 1.05,
        min=middle_s * 0.8,
        p50=middle_s,
        p90=middle_s * 1.3,
        p95=middle_s * 1.4,
        p99=middle_s * 1.6 if n >= 100 else None,
        max=middle_s * 1.7,
    )


def summary(n: int = 40, failed: int = 0, status: str = "valid") -> LoadSummary:
    return LoadSummary(
        run=FACTS.run,
        requests=RequestCounts(total=n + failed, ok=n, failed={"truncated": failed} if failed else {}),
        trust=Trust(status=status, error_s=0.0038),  # type: ignore[arg-type]
        rates=Rates(requests_per_s=2.51, output_tokens_per_s=120.4, peak_output_tokens_per_s=131.0),
        ttft=spread(0.31, n),
        ttfa=spread(0.42, n),
        tpot=spread(0.0269, n),
        gap=spread(0.0268, n * 47),
        e2e=spread(1.61, n),
        e2e_from_schedule=spread(1.61, n),
        error_latency=Spread(),
        tokens=TokenCounts(prompt=n * 61, output=n * 48, in_window=n * 47, per_chunk=1.0, source="usage"),
        errors={"truncated": "the stream ended without finish_reason"} if failed else {},
    )


def full_summary() -> LoadSummary:
    """Everything a load test may have to say, and messages as long as they get."""
    term = SloTerm(text="ttft_p95<500ms", metric="ttft_p95", comparison="<", limit=0.5, value=0.6, met=False)
    row = StyleRow(name="TTFT", unit="ms", definition="as that tool counts", n=40, mean=1.0, p50=1.0)
    return msgspec.structs.replace(
        summary(failed=3),
        itl=spread(0.01, 400),
        ttft_from_schedule=spread(0.5, 40),
        e2e_with_failures=spread(2.0, 43),
        error_latency=spread(0.1, 3),
        stages={name: spread(0.01, 40) for name in STAGES},
        arrivals=Arrivals(
            process="poisson", status="as_asked", n=43, asked_per_s=2.6, sent_per_s=2.5, gap_cv=1.0
        ),
        server=ServerView(ttft_mean_s=0.3, queue_mean_s=0.1, output_tokens=1920),
        slo=SloResult(text="ttft_p95<500ms", met=False, terms=(term,) * 4, goodput_per_s=1.0, good_share=0.5),
        style="vllm",
        styled=(row,) * 7,
        course=tuple(
            Interval(
                start_s=12.0 + n, end_s=13.0 + n, in_flight=4.0, ok=3, output_tokens=120.0, ttft_p50_s=0.3
            )
            for n in range(16)
        ),
        notes=tuple(f"note {n}" for n in range(8)),
        errors={f"http_{n}": "message " * 30 for n in range(500, 505)},
    )


LAUNCH_FIX = FixOffer(
    id="compile-static-cache",
    title="Compile the decode step with a static cache",
    verdict="confirmed",
    bound=(1.6, 5.9),
    source="guide 4.2",
    claim="3x to 5x on small models",
    precondition="prompts and answers fit a fixed maximum length",
    contraindication="lengths that change with every request: each new shape compiles anew",
    risk="the cache is attended to at full length",
    changes_output="maybe",
    needs_restart=True,
    first_call="about 40 s of compilation",
    rollback="Drop the argument.",
    measured=(
        Measured(hardware="one H200", model="1.5B", versions="torch 2.11", ratio=14.6, how="ms per step"),
    ),
    commands=('model.generation_config.cache_implementation = "static"',),
    verify="perfdoctor verify compile-static-cache --model shape:deepseek-r1-distill-qwen-1.5b",
)
BATCH_FIX = FixOffer(
    id="batch-requests",
    title="Serve requests together with continuous batching",
    verdict="conditional",
    bound=(2.0, 2.0),
    commands=("vllm serve ./model",),
)
REFUTED_FIX = FixOffer(
    id="disable-kv-cache", title="Switch the KV cache off", verdict="refuted", bound=(9.0, 9.0)
)

LAUNCH = Finding(
    rule="launch-bound-decode",
    cls="launch-overhead",
    title="Decode waits for kernel launches",
    status="hit",
    confidence="medium",
    share=0.71,
    seconds=(1.08, 1.21),
    run_seconds=46.0,
    evidence=(
        Evidence(
            signal="step.device_share",
            value=0.11,
            unit="share",
            comparison="below",
            limit=0.6,
            source="diagnosis 3.5",
        ),
        Evidence(
            signal="step.launches",
            value=1187,
            unit="",
            comparison="at_least",
            limit=500,
            source="measured, scenarios/launch-bound-decode.toml",
        ),
    ),
    excluded=("memory bandwidth: DRAM active 1.6 %", "CPU contention: run-queue wait 0.4 %"),
    summary="22.7 of 26.9 ms per token pass while the GPU waits for the host to launch the next kernel.",
    fixes=(REFUTED_FIX, LAUNCH_FIX),
)
SERIAL = Finding(
    rule="serial-server",
    cls="scheduling",
    title="Requests are served one at a time",
    status="hit",
    confidence="medium",
    share=0.19,
    seconds=(0.29, 0.31),
    evidence=(
        Evidence(
            signal="load.concurrency_gain",
            value=1.03,
            unit="x",
            comparison="below",
            limit=1.3,
            source="diagnosis 3.6",
        ),
    ),
    summary="Four users get 1.03 times the throughput of one: each waits for the others' answers.",
    fixes=(BATCH_FIX,),
)
MEAN = (
    LedgerRow(row="client_wait", seconds=0.0, share=0.0, source="driver"),
    LedgerRow(row="server_queue", seconds=0.301, share=0.19, low_s=0.29, high_s=0.31, source="server hooks"),
    LedgerRow(row="prefill", seconds=0.05, share=0.03, source="server hooks"),
    LedgerRow(row="decode.launch_gap", seconds=1.144, share=0.71, low_s=1.08, high_s=1.21, source="profiler"),
    LedgerRow(row="decode.compute", seconds=0.081, share=0.05, source="profiler"),
    LedgerRow(row="unexplained", seconds=0.034, share=0.02, source="rest"),
)
P95 = (
    LedgerRow(row="server_queue", seconds=0.62, share=0.29, source="server hooks"),
    LedgerRow(row="prefill", seconds=0.06, share=0.03, source="server hooks"),
    LedgerRow(row="decode.launch_gap", seconds=1.21, share=0.57, source="profiler"),
    LedgerRow(row="decode.compute", seconds=0.09, share=0.04, source="profiler"),
    LedgerRow(row="unexplained", seconds=0.15, share=0.07, source="rest"),
)
LOADING = (
    LedgerRow(row="storage_wait", seconds=0.8, share=0.16, source="delay accounting"),
    LedgerRow(row="deserialise", seconds=1.4, share=0.28, source="server hooks"),
    LedgerRow(row="host_to_device", seconds=0.7, share=0.14, source="server hooks"),
    LedgerRow(row="import", seconds=1.9, share=0.38, source="server hooks"),
    LedgerRow(row="unexplained", seconds=0.2, share=0.04, source="rest"),
)
FOUND = Diagnosis(
    run=FACTS.run,
    trust=Trust(status="valid", error_s=0.0038),
    verdict=Verdict(
        status="found",
        cls="launch-overhead",
        summary="71 % of a request's time the GPU waits for kernel launches; 19 % it waits in a queue.",
    ),
    findings=(LAUNCH, SERIAL),
    rules=(
        RuleState(rule="launch-bound-decode", cls="launch-overhead", status="hit"),
        RuleState(rule="serial-server", cls="scheduling", status="hit"),
        RuleState(
            rule="bandwidth-bound-decode", cls="memory-bandwidth", status="clear", reason="DRAM active 1.6 %"
        ),
        RuleState(
            rule="slow-storage-load", cls="disk-io", status="clear", reason="storage wait 16 % of the load"
        ),
        RuleState(
            rule="gil-contention",
            cls="gil",
            status="unknown",
            reason="gil.held_share missing: py-spy was denied",
        ),
    ),
    ledger=Ledger(mean=MEAN, p95=P95, load=LOADING, unexplained_share=0.02),
    roof=Roof(
        physical_share=0.027,
        achievable_share=0.033,
        binding="launch",
        assumptions=("every weight is read once per token", "bfloat16"),
    ),
    violated_laws=(
        Violation(
            law="busy-at-most-wall",
            what="kernels were busy 103 % of the profiled window",
            likely="two streams overlapped",
            stops=("compute-prefill",),
        ),
    ),
    laws=(
        LawState(law="L1", says="Users bound what is open", status="holds"),
        LawState(law="L1", says="A server holds what was sent", status="unknown", reason="no gauge"),
        LawState(law="L4", says="A cache fits", status="unknown", reason="no log was named"),
        LawState(law="L7", says="Busy at most wall", status="broken", reason="103 % of the window"),
    ),
    unmeasured=(FACTS.probes[2],),
    signals=(
        Signal(name="step.device_share", value=0.11, unit="share", n=16),
        Signal(name="engine.ttft.p95", value=0.375, unit="s", n=80, low=0.25, high=0.5),
        Signal(name="step.launches", value=1187.0, unit="", n=16),
        Signal(name="gil.held_share.p50", value=None, unit="share", missing="py-spy was denied"),
    ),
    facts=FACTS,
    next="perfdoctor explain compile-static-cache",
)


def requests(count: int = 40, users: int = 4, e2e_s: float = 1.6) -> tuple[RequestRecord, ...]:
    """A closed loop over the steady phase, every fifth request slower, the last one failed."""
    made = [_request(0, "warmup", 6.2, e2e_s / 4)]
    made += [_request(1 + i, "baseline", 8.0 + i * e2e_s / 3, e2e_s / 4) for i in range(6)]
    for i in range(count):
        start = 12.0 + (i // users) * e2e_s + (i % users) * e2e_s / users
        made.append(_request(100 + i, "steady", start, e2e_s * (0.95 if i % 5 else 1.15)))
    last = made.pop()
    made.append(
        RequestRecord(
            id=last.id, phase="steady", due_s=last.due_s, sent_s=last.sent_s, end_s=last.end_s,
            outcome="truncated", error="the stream ended without finish_reason",
        )
    )  # fmt: skip
    return tuple(made)


def _request(ident: int, phase: str, start_s: float, e2e_s: float) -> RequestRecord:
    first, tokens = start_s + 0.3 * e2e_s, 48
    pace = (start_s + e2e_s - first) / (tokens - 1)
    stamps = tuple(first + k * pace for k in range(tokens))
    return RequestRecord(
        id=ident,
        phase=phase,  # type: ignore[arg-type]
        due_s=start_s,
        sent_s=start_s,
        headers_s=start_s + 0.01,
        first_event_s=first,
        first_token_s=first,
        first_answer_s=first,
        last_token_s=stamps[-1],
        end_s=stamps[-1],
        token_at_s=stamps,
        prompt_tokens=61,
        output_tokens=tokens,
        token_source="usage",
        finish_reason="length",
        status=200,
    )


def serve_samples(records: tuple[RequestRecord, ...]) -> tuple[Sample, ...]:
    """What the local server tells about each request: how long it waited before its turn."""
    return tuple(
        Sample(
            at_s=r.end_s or 0.0,
            probe="serve",
            labels={"request": str(r.id)},
            values={"arrived_s": r.sent_s, "started_s": r.sent_s + 0.6 * (r.first_token_s - r.sent_s)},
        )
        for r in records
        if r.sent_s is not None and r.first_token_s is not None
    )


def samples(seconds: float = 28.0, hertz: float = 5.0) -> tuple[Sample, ...]:
    """All probes at one rate; counters grow, one reading is missing."""
    made = []
    for i in range(round(seconds * hertz)):
        at = i / hertz
        load, steady = at < 6, at >= 12
        wave = 0.5 + 0.5 * math.sin(at)
        made += [
            Sample(at_s=at, probe="gpu", labels={"gpu": "0"}, values={
                "sm_active": None if i == 40 else 0.02 if load else 0.1 + 0.05 * wave, "dram_active": 0.016,
                "util": 0.3, "mem_used_bytes": 4.1e9, "power_w": 180 + 40 * wave}),
            Sample(at_s=at, probe="disk", labels={"device": "nvme0n1"}, values={
                "read_bytes": min(at, 5.0) * 0.7e9, "busy_time_s": min(at, 5.0) * 0.3}),
            Sample(at_s=at, probe="io", values={"blocked_threads": 1.0 if load else 0.0}),
            Sample(at_s=at, probe="cpu", values={
                "oncpu_s": at * 1.02, "runq_wait_s": at * 0.03, "host_cores": 16}),
            Sample(at_s=at, probe="gil", labels={"pid": "4121"}, values={"held_share": 0.8 * wave}),
            Sample(at_s=at, probe="memory", values={"rss_bytes": min(at, 6.0) * 0.6e9}),
            Sample(at_s=at, probe="engine", values={
                "running": 1.0 if steady else 0.0, "waiting": 3.0 if steady else 0.0}),
        ]  # fmt: skip
    return tuple(made)


STACKS = "main;generate;forward;linear 420\nmain;generate;forward;sdpa 120\nmain;serve;poll 60\n"


def found() -> Bundle:
    records = requests()
    return Bundle(FOUND, summary(39, 1), FACTS, records, samples() + serve_samples(records), STACKS)


def healthy() -> Bundle:
    diagnosis = Diagnosis(
        run=FACTS.run,
        trust=Trust(status="valid", error_s=0.001),
        verdict=Verdict(status="healthy", cls="healthy", summary="No cause takes a share worth removing."),
        rules=(RuleState(rule="serial-server", cls="scheduling", status="clear"),),
        ledger=Ledger(mean=(LedgerRow(row="decode.compute", seconds=1.2, share=1.0),), unexplained_share=0.0),
        facts=FACTS,
        next="perfdoctor report latest --html",
    )
    return Bundle(diagnosis, summary(120), FACTS, requests(120), samples())


def untrusted() -> Bundle:
    diagnosis = Diagnosis(
        run=FACTS.run,
        trust=Trust(status="invalid", error_s=0.4, reasons=("the load generator used 97 % of a core",)),
        verdict=Verdict(status="untrusted", cls="client-limited", summary="The client was the bottleneck."),
        rules=(
            RuleState(rule="serial-server", cls="scheduling", status="unknown", reason="trust is invalid"),
        ),
        ledger=Ledger(missing="no ledger from a measurement that cannot be trusted"),
        roof=Roof(missing="no decode step was profiled"),
        facts=FACTS,
        next="perfdoctor diagnose --model tiny -c 2",
    )
    return Bundle(diagnosis, summary(40, 2, "invalid"), FACTS, requests(), samples())


def killed() -> Bundle:
    """`kill -9` before the first phase: facts alone."""
    facts = RunFacts(run="20261130-230000-diagnose", argv=("perfdoctor", "diagnose"))
    diagnosis = Diagnosis(
        run=facts.run,
        state="interrupted",
        trust=Trust(status="degraded", reasons=("no request was finished",)),
        verdict=Verdict(status="insufficient_evidence", summary="Nothing was recorded."),
        facts=facts,
        next="perfdoctor diagnose --model tiny",
    )
    return Bundle(diagnosis, None, facts)


ALL = {"found": found, "healthy": healthy, "untrusted": untrusted, "killed": killed}
