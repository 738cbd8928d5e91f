"""What is known about a run that is not a request or a sample."""

from __future__ import annotations

from typing import Literal

from perfdoctor.model._record import SCHEMA_VERSION, Record
from perfdoctor.model.observed import Metric, ProbeState
from perfdoctor.model.orders import Phase, Scenario


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
    eager: bool | None = None  # started without CUDA graphs, by its command line; None: that does not tell
    on_host_share: float | None = None  # of the loaded bytes, not in GPU memory, as the server tells
    roof_refused: str | None = None  # why a step's bytes say nothing about its limit
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
    read_lag_p50_s: float | None = None  # from a descriptor being ready to its callback: what a chunk waits
    read_lag_p99_s: float | None = None
    read_lag_max_s: float | None = None
    fds_open: int | None = None  # descriptors at most, and how many this process may have
    fds_limit: int | None = None
    ports_used: int | None = None  # local ports at most, to the target, open or in TIME_WAIT
    ports_limit: int | None = None  # size of the ephemeral range
    transport: str | None = None  # raw, aiohttp or httpx, as chosen
    workers: int = 1  # driver processes; the figures above are those of the worst of them
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
    recorded_s: float | None = None  # when everything was on disk; from the last phase's end it took so long
    stopped: str | None = None  # the crossed `max_error_rate`: it ended the load, or was seen at its end
    error: str | None = None
