"""The records that cross stages, frozen, and nothing else.

Every type is a frozen `msgspec.Struct`, so that one declaration gives the JSON form, the reader, the
validation and the JSON Schema. Times are seconds since the run's monotonic zero, shares are 0-1, and None
always means "not known", never zero. Imports nothing of ours.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA_VERSION = 1

ProbeStatus = Literal["ok", "denied", "unsupported", "absent", "stale"]
RuleStatus = Literal["hit", "clear", "unknown"]
Confidence = Literal["low", "medium", "high"]
PhaseName = Literal["load", "warmup", "baseline", "steady", "profile"]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all records. Unknown JSON keys are ignored, since changes are additive only."""


# ------------------------------------------------------------------------------ what a run was asked to do


class Target(Record, frozen=True, kw_only=True):
    """What is measured: a URL that someone else serves, or a model that a child process will serve."""

    endpoint: str | None = None
    model: str | None = None  # `tiny`, `shape:NAME`, a folder; with an endpoint: the served model's name
    api: Literal["chat", "completions"] = "chat"
    served_name: str | None = None  # the name to put into request bodies, once known
    headers: dict[str, str] = {}
    api_key_env: str | None = None  # the variable's name; its value is never stored
    options: dict[str, str] = {}  # settings of the local child: device, dtype, threads


class Load(Record, frozen=True, kw_only=True):
    """How hard to drive. A closed loop: `concurrency` users, each sending its next request on an answer."""

    concurrency: int = 4
    requests: int | None = None  # stop after this many; None: until `duration_s`
    duration_s: float | None = None
    warmup_requests: int = 2
    baseline_requests: int = 0  # sent one at a time before the steady phase, for comparison
    prompt_tokens: int = 48  # approximate words of a synthetic prompt
    output_tokens: int = 48  # `max_tokens` of every request
    timeout_s: float = 120.0  # whole request
    drain_s: float = 30.0  # how long open requests may finish after the last was issued
    temperature: float | None = None  # None: the server's default
    seed: int = 0


class Scenario(Record, frozen=True, kw_only=True):
    """A run's orders, as written to scenario.toml. `expect` and `fault` are used by the benchmark only."""

    name: str = "adhoc"
    description: str = ""
    target: Target = Target()
    load: Load = Load()
    probes: dict[str, float] = {}  # probe id -> samples a second; empty: the defaults
    fault: dict[str, Any] = {}
    expect: dict[str, Any] = {}


class Phase(Record, frozen=True, kw_only=True):
    """A stretch of the run on its clock. `concurrency` is None where no load was driven."""

    name: PhaseName
    start_s: float
    end_s: float
    concurrency: int | None = None


# ------------------------------------------------------------------------------ raw observations


class RequestRecord(Record, frozen=True, kw_only=True):
    """One request as instants on the run's clock; every duration is computed later (see latency.py).

    A None instant was not reached: `connected_s` is None on a reused connection, `first_token_s` when no
    payload came. `token_at_s` holds the arrival of each chunk that carried generated payload.
    """

    id: int
    phase: PhaseName
    due_s: float  # when the schedule wanted it sent
    sent_s: float | None = None
    connected_s: float | None = None
    headers_s: float | None = None
    first_event_s: float | None = None
    first_token_s: float | None = None
    first_answer_s: float | None = None  # first chunk that is no reasoning
    last_token_s: float | None = None
    end_s: float | None = None
    token_at_s: tuple[float, ...] = ()
    first_text: str | None = None  # at most 24 characters: tells a prompt's tail from a token
    head_chunks: int = 0  # leading chunks found to be the prompt's own tail, already left out above
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    token_source: Literal["usage", "chunks"] | None = None
    asked_tokens: int | None = None
    finish_reason: str | None = None
    status: int | None = None  # HTTP status; None when no answer came
    outcome: str = "ok"  # or a failure class, see design section 6
    error: str | None = None
    server_prefill_s: float | None = None  # as told by the server inside the stream (llama.cpp `timings`)
    server_decode_s: float | None = None
    reused: bool = False  # sent on a kept-alive connection
    redialled: bool = False  # that connection was dead; sent again once on a new one
    censored: bool = False  # still open when the run ended


class Sample(Record, frozen=True, kw_only=True):
    """One reading of one probe. Counters are stored as the source gives them, cumulative."""

    at_s: float
    probe: str
    values: dict[str, float | None] = {}
    labels: dict[str, str] = {}
    took_s: float = 0.0  # what the reading cost
    late_s: float = 0.0  # how long after its due time it was taken
    status: ProbeStatus = "ok"
    why: str | None = None  # for any status but ok


class Metric(Record, frozen=True, kw_only=True):
    """What one value of a probe means; stored in run.json, so that old runs explain themselves."""

    probe: str
    name: str
    unit: str
    meaning: str
    kind: Literal["gauge", "counter"] = "gauge"
    cross_check: str = ""  # a command by which anyone can check the number


class ProbeState(Record, frozen=True, kw_only=True):
    """Whether a probe worked in this run, and if not, why and what would enable it."""

    probe: str
    status: ProbeStatus
    why: str | None = None
    enable: str | None = None  # a command or a sentence
    cost_s: float = 0.0  # sum over the run
    late_max_s: float = 0.0
    samples: int = 0
    errors: int = 0


# ------------------------------------------------------------------------------ facts of a run


class TargetFacts(Record, frozen=True, kw_only=True):
    """What was found out about the target. Byte and FLOP counts are per forward pass of one token."""

    kind: Literal["local", "endpoint"] = "endpoint"
    url: str = ""
    remote: bool = False  # not on this host: host probes are unsupported
    engine: str = "unknown"
    engine_version: str | None = None
    engine_source: str | None = None  # how the engine was recognised
    model: str | None = None
    model_path: str | None = None
    weights_random: bool | None = None
    parameters: int | None = None
    dtype: str | None = None
    device: str | None = None  # "cpu", "cuda:0"
    threads: int | None = None
    weights_bytes: int | None = None  # all weights in memory
    file_bytes: int | None = None  # of the weight files on disk
    file_resident_share: float | None = None  # of those files in the page cache before loading
    step_bytes: int | None = None  # weights read by one decode step (input embedding is a lookup)
    step_flops: int | None = None
    kv_bytes_per_token: int | None = None
    max_batch: int | None = None  # requests the server can serve together; 1: serial
    pid: int | None = None
    pids: tuple[int, ...] = ()


class GpuFacts(Record, frozen=True, kw_only=True):
    index: int
    name: str
    memory_bytes: int | None = None
    driver: str | None = None
    gpm: bool = False
    power_limit_w: float | None = None
    sm_clock_max_mhz: float | None = None
    pcie: str | None = None


class HostFacts(Record, frozen=True, kw_only=True):
    hostname: str = ""
    kernel: str = ""
    cpu: str = ""
    cores: int = 0
    quota_cores: float | None = None  # CFS quota of our cgroup; None: none set
    memory_bytes: int | None = None
    python: str = ""
    gpus: tuple[GpuFacts, ...] = ()


class ClientFacts(Record, frozen=True, kw_only=True):
    """The driver's own health: what decides whether its numbers can be trusted."""

    cpu_share: float | None = None  # of one core, steady phase
    loop_lag_p50_s: float | None = None
    loop_lag_p99_s: float | None = None
    loop_lag_max_s: float | None = None
    send_late_p99_s: float | None = None
    gc_pause_max_s: float | None = None
    runq_wait_share: float | None = None  # the driver's thread waited for a CPU, share of wall
    redialled: int = 0


class RunFacts(Record, frozen=True, kw_only=True):
    """run.json: everything about a run that is not a request or a sample."""

    schema: int = SCHEMA_VERSION
    perfdoctor: str = ""
    run: str = ""
    command: str = "diagnose"
    argv: tuple[str, ...] = ()
    state: Literal["running", "complete", "interrupted", "failed"] = "running"
    wall_zero: str = ""  # ISO 8601 UTC of the monotonic zero
    zero_ns: int = 0  # the monotonic zero itself
    scenario: Scenario = Scenario()
    target: TargetFacts = TargetFacts()
    host: HostFacts = HostFacts()
    client: ClientFacts = ClientFacts()
    phases: tuple[Phase, ...] = ()
    probes: tuple[ProbeState, ...] = ()
    metrics: tuple[Metric, ...] = ()
    calibration: dict[str, float | None] = {}  # ceilings measured on this machine before the load
    notes: tuple[str, ...] = ()
    error: str | None = None


# ------------------------------------------------------------------------------ judgement


class Signal(Record, frozen=True, kw_only=True):
    """A derived number a rule may test. `value` None carries the reason in `missing`."""

    name: str
    value: float | None
    unit: str
    n: int | None = None
    missing: str | None = None
    source: str | None = None  # where the number came from, if it has more than one possible source


class LedgerRow(Record, frozen=True, kw_only=True):
    row: str
    seconds: float
    share: float
    low_s: float | None = None
    high_s: float | None = None
    source: str = ""


class Ledger(Record, frozen=True, kw_only=True):
    """Request time split into disjoint rows that sum to it; `load` does the same for model loading."""

    mean: tuple[LedgerRow, ...] = ()
    p95: tuple[LedgerRow, ...] = ()
    load: tuple[LedgerRow, ...] = ()
    unexplained_share: float | None = None
    missing: str | None = None


class Evidence(Record, frozen=True, kw_only=True):
    signal: str
    value: float | None
    unit: str
    comparison: Literal["below", "at_least"]
    limit: float
    source: str


class FixOffer(Record, frozen=True, kw_only=True):
    """A fix matched to a finding, with this run's numbers filled in."""

    id: str
    title: str
    verdict: Literal["confirmed", "conditional", "refuted"]
    bound: tuple[float, float] | None = None  # speed-up factor, from the ledger (Amdahl); None: unknown
    source: str = ""
    claim: str = ""
    precondition: str = ""
    contraindication: str = ""
    risk: str = ""
    commands: tuple[str, ...] = ()
    verify: str = ""


class Finding(Record, frozen=True, kw_only=True):
    rule: str
    cls: str = msgspec.field(name="class")
    title: str
    status: RuleStatus
    confidence: Confidence = "low"
    share: float | None = None
    seconds: tuple[float, float] | None = None  # attributable, per request (or of the load), low and high
    run_seconds: float | None = None  # the same over this run's wall clock; ranks findings
    of: Literal["request", "load", "measurement"] = "request"
    evidence: tuple[Evidence, ...] = ()
    excluded: tuple[str, ...] = ()
    explained_by: str | None = None
    summary: str = ""
    fixes: tuple[FixOffer, ...] = ()


class RuleState(Record, frozen=True, kw_only=True):
    rule: str
    cls: str = msgspec.field(name="class")
    status: RuleStatus
    reason: str = ""


class Trust(Record, frozen=True, kw_only=True):
    status: Literal["valid", "degraded", "invalid"]
    error_s: float | None = None
    reasons: tuple[str, ...] = ()


class Verdict(Record, frozen=True, kw_only=True):
    status: Literal["found", "healthy", "insufficient_load", "insufficient_evidence", "untrusted"]
    cls: str | None = msgspec.field(name="class", default=None)
    summary: str = ""


class Roof(Record, frozen=True, kw_only=True):
    physical_share: float | None = None
    achievable_share: float | None = None
    binding: str | None = None
    assumptions: tuple[str, ...] = ()
    missing: str | None = None


class Violation(Record, frozen=True, kw_only=True):
    law: str
    what: str
    likely: str
    stops: tuple[str, ...] = ()  # rule classes that rest on the impossible number


class Diagnosis(Record, frozen=True, kw_only=True):
    """The one input of every report. Every field of the published JSON contract, additive only."""

    schema: int = SCHEMA_VERSION
    run: str
    state: str = "complete"
    trust: Trust
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    rules: tuple[RuleState, ...] = ()
    ledger: Ledger = Ledger()
    roof: Roof = Roof()
    violated_laws: tuple[Violation, ...] = ()
    unmeasured: tuple[ProbeState, ...] = ()
    signals: tuple[Signal, ...] = ()
    facts: RunFacts = RunFacts()
    next: str = ""


# ------------------------------------------------------------------------------ load-test result


class Spread(Record, frozen=True, kw_only=True):
    """Nearest-rank percentiles in seconds. p99 is None below 100 values; all None when n is 0."""

    n: int = 0
    mean: float | None = None
    min: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


class RequestCounts(Record, frozen=True, kw_only=True):
    total: int = 0
    ok: int = 0
    failed: dict[str, int] = {}
    censored: int = 0
    empty_answers: int = 0
    redialled: int = 0
    finish_reasons: dict[str, int] = {}


class Rates(Record, frozen=True, kw_only=True):
    requests_per_s: float | None = None
    output_tokens_per_s: float | None = None
    peak_output_tokens_per_s: float | None = None
    asked_per_s: float | None = None
    in_flight_mean: float | None = None


class TokenCounts(Record, frozen=True, kw_only=True):
    prompt: int | None = None
    output: int | None = None
    in_window: int | None = None
    per_chunk: float | None = None  # mean output tokens a chunk
    source: str | None = None


class LoadSummary(Record, frozen=True, kw_only=True):
    """`load-test --json`. `itl` is null unless per-chunk token counts are known; `gap` is between chunks."""

    schema: int = SCHEMA_VERSION
    run: str
    state: str = "complete"
    requests: RequestCounts
    trust: Trust
    rates: Rates
    ttft: Spread
    ttfa: Spread
    tpot: Spread
    itl: Spread | None = None
    gap: Spread
    e2e: Spread
    e2e_from_schedule: Spread
    error_latency: Spread
    tokens: TokenCounts
    slo: None = None
    notes: tuple[str, ...] = ()
    errors: dict[str, str] = {}  # failure class -> first message seen
