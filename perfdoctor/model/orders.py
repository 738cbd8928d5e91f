"""What a run is asked to do: the target, the way to it, the load, the prompts, the scenario.

None and an empty value mean that nothing was asked for, and a default applies.
"""

from __future__ import annotations

from typing import Any, Literal

from perfdoctor.model._record import PhaseName, Record

Arrival = Literal["closed", "constant", "poisson", "gamma", "replay", "none"]
Api = Literal["chat", "completions", "responses", "http"]


class Wire(Record, frozen=True, kw_only=True):
    """How to reach the target. Nothing is taken from the environment but the platform's trust store."""

    transport: Literal["auto", "raw", "aiohttp", "httpx"] = "auto"  # auto: raw where it can, else aiohttp
    http2: bool = False  # httpx only
    insecure: bool = False  # do not verify the server's certificate
    ca_file: str | None = None  # PEM bundle to trust instead of the platform's
    client_cert: str | None = None  # PEM, with its key in the same file or in client_key
    client_key: str | None = None
    proxy: str | None = None  # http://host:port; environment proxies are ignored, they coalesce chunks
    unix_socket: str | None = None  # path; the endpoint's host then only fills the Host header


class Target(Record, frozen=True, kw_only=True):
    """What is measured: a URL that someone else serves, or a model that a child process will serve."""

    endpoint: str | None = None
    model: str | None = None  # `tiny`, `shape:NAME`, a folder; with an endpoint: the served model's name
    api: Api = "chat"
    stream: bool = True  # False: one JSON body per answer; then there is no first token to time
    served_name: str | None = None  # the name to put into request bodies, once known
    headers: dict[str, str] = {}
    api_key_env: str | None = None  # the variable's name; its value is never stored
    extra_body: dict[str, Any] = {}  # members laid over the JSON body of every request
    method: str | None = None  # api http only; None: POST with a body, else GET
    body: str | None = None  # api http only: template of the body, see loadgen/protocols/http.py
    body_file: str | None = None  # the same in a file, of any bytes
    wire: Wire = Wire()
    log: str | None = None  # the server's log file, to be followed
    options: dict[str, str] = {}  # of the local child: device, dtype, threads, and perfdoctor.local.switches


class Prompts(Record, frozen=True, kw_only=True):
    """Where the prompts come from; everything is offline.

    A length is a number of tokens or a distribution: `uniform(32,96)`, `normal(48,12)`, `lognormal(48,0.6)`.
    """

    source: Literal["synthetic", "jsonl", "csv", "sharegpt"] = "synthetic"
    file: str | None = None
    input_tokens: int | str = 48  # of a synthetic prompt, its shared prefix included
    output_tokens: int | str = 48  # `max_tokens` of every request that does not bring its own
    shared_prefix_tokens: int = 0  # leading tokens that all synthetic prompts have in common
    turns: int = 1  # of a synthetic conversation; a file's conversations have their own
    tokenizer: str | None = None  # folder with a tokenizer.json: lengths and counts become exact
    count_per_chunk: bool = False  # ask for usage in every chunk, so that ITL is known; not all servers can


class Load(Record, frozen=True, kw_only=True):
    """How hard to drive.

    `none`: not at all; the traffic that is there is watched for `duration_s`.
    `closed`: `concurrency` users, each sending its next request on an answer. The others are open loops: one
    absolute schedule, made before the first request from `seed`, at `rate` or along `ramp`.
    """

    concurrency: int = 4  # users of a closed loop
    arrival: Arrival = "closed"
    rate: float | None = None  # requests a second, open loop
    burstiness: float = 1.0  # gamma: its shape; 1 is Poisson, below 1 bursts, above 1 is more regular
    ramp: tuple[tuple[float, float], ...] = ()  # (second, rate) corners, straight between them; open loop
    ramp_up_s: float = 0.0  # closed loop: over how long the users start
    replay: str | None = None  # JSONL file of timestamped requests
    replay_speed: float = 1.0
    max_in_flight: int | None = None  # open loop: a request due above it waits, is sent late and says so
    requests: int | None = None  # stop after this many; None: until `duration_s`
    duration_s: float | None = None
    warmup_requests: int = 2
    warmup_s: float = 0.0  # load of the steady kind whose requests are left out; handed over undrained
    baseline_requests: int = 0  # sent one at a time before the steady phase, for comparison
    prompts: Prompts = Prompts()
    timeout_s: float = 120.0  # whole request
    connect_timeout_s: float = 10.0
    idle_timeout_s: float | None = None  # longest silence: before an answer and inside it
    drain_s: float = 30.0  # how long open requests may finish after the time is over or a stop was asked for
    deadline_s: float | None = None  # of the whole load, drain included; then everything open is cancelled
    max_error_rate: float | None = None  # share of failed requests above which the run is stopped
    experiments: bool = False  # a dozen requests after the load, one thing changed in each kind
    workers: int | None = None  # driver processes; None: as many as the machine and the pace ask for
    temperature: float | None = None  # None: the server's default
    slo: str | None = None  # `ttft_p95<500ms,tpot_p95<50ms`
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
    """A stretch of the run on its clock. `concurrency` is None where no closed loop was driven."""

    name: PhaseName
    start_s: float
    end_s: float
    concurrency: int | None = None
