"""The result of a load test."""

from __future__ import annotations

from typing import Literal

from perfdoctor.model._record import SCHEMA_VERSION, Record
from perfdoctor.model.judged import Trust


class Spread(Record, frozen=True, kw_only=True):
    """Nearest-rank percentiles, in seconds unless said otherwise. p99 is None below 100 values; all None when
    n is 0. `intervals` holds the 95 % order-statistic interval of a percentile, where n allows one, as if the
    values were independent; gaps of one answer are not, so theirs are too narrow.
    """

    n: int = 0
    mean: float | None = None
    min: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None
    intervals: dict[str, tuple[float, float]] = {}


class RequestCounts(Record, frozen=True, kw_only=True):
    total: int = 0
    ok: int = 0
    failed: dict[str, int] = {}
    censored: int = 0  # still open at the end
    not_sent: int = 0  # of those, due before the end but never sent
    late: int = 0  # sent late because of the cap on open requests or a busy client
    empty_answers: int = 0
    redialled: int = 0
    finish_reasons: dict[str, int] = {}
    distinct_prompts_share: float | None = None


class Rates(Record, frozen=True, kw_only=True):
    """Over the part of the load that was the one asked for: `start_s` to `end_s` on the run's clock."""

    start_s: float | None = None
    end_s: float | None = None
    requests_per_s: float | None = None
    output_tokens_per_s: float | None = None
    input_tokens_per_s: float | None = None
    peak_output_tokens_per_s: float | None = None
    asked_per_s: float | None = None  # open loop: what the schedule asked for
    sent_per_s: float | None = None  # and what was sent
    in_flight_mean: float | None = None
    in_flight_max: int | None = None


class Arrivals(Record, frozen=True, kw_only=True):
    """Whether the load that left the client is the one that was asked for; open loop only."""

    process: str
    status: Literal["as_asked", "deviates", "unknown"]
    n: int = 0
    asked_per_s: float | None = None
    sent_per_s: float | None = None
    gap_cv: float | None = None  # standard deviation of the gaps over their mean; Poisson 1, constant 0
    dispersion: float | None = None  # variance over mean of counts in equal windows; Poisson 1
    ks_distance: float | None = None  # Kolmogorov-Smirnov, of the sent instants against the due ones
    late_p50_s: float | None = None
    late_p99_s: float | None = None
    late_max_s: float | None = None
    reason: str = ""


class TokenCounts(Record, frozen=True, kw_only=True):
    prompt: int | None = None
    output: int | None = None
    asked: int | None = None  # of the requests that succeeded, and delivered to the same
    delivered: int | None = None
    cached: int | None = None
    in_window: int | None = None  # those that the rate counts, also what the warm-up left to be delivered
    per_chunk: float | None = None  # mean output tokens a chunk
    source: str | None = None


class SloTerm(Record, frozen=True, kw_only=True):
    """One limit: `metric` with its statistic, as `ttft_p95`. `met` None: it has no value, `missing` why."""

    text: str
    metric: str
    comparison: Literal["<", "<=", ">", ">=", "="]
    limit: float | str
    value: float | str | None = None
    met: bool | None = None
    missing: str | None = None


class SloResult(Record, frozen=True, kw_only=True):
    """An SLO against the run. A request is good when it succeeded and met every per-request limit."""

    text: str
    met: bool | None = None  # None: a term has no value
    terms: tuple[SloTerm, ...] = ()
    goodput_per_s: float | None = None
    good_share: float | None = None  # of all requests of the steady phase, failed ones too


class Interval(Record, frozen=True, kw_only=True):
    """One bin of the steady phase. In flight and tokens are all that the server had to serve, as what the
    warm-up left open; the counts are the steady requests alone.
    """

    start_s: float
    end_s: float
    in_flight: float = 0.0  # mean over the bin
    sent: int = 0
    ok: int = 0
    failed: int = 0
    output_tokens: float = 0.0
    ttft_p50_s: float | None = None


class ServerView(Record, frozen=True, kw_only=True):
    """The same phase by the server's own counters: differences of two scrapes, never totals since boot."""

    requests: int | None = None
    ttft_mean_s: float | None = None
    e2e_mean_s: float | None = None
    queue_mean_s: float | None = None
    # "ttft_p95_s" ...: edges of its bucket in the server's histogram; without an upper one beyond the last
    percentiles: dict[str, tuple[float, float | None]] = {}
    output_tokens: float | None = None
    requests_here: int | None = None  # that ended here between the same two scrapes, those of the warm-up too
    output_tokens_here: float | None = None  # that arrived here between them
    doubts: tuple[str, ...] = ()  # why its numbers and ours may not be of the same requests
    source: str = ""  # the metric names
    missing: str | None = None


class StyleRow(Record, frozen=True, kw_only=True):
    """One line of another tool's table, recomputed from this run's instants by that tool's definition."""

    name: str  # as that tool prints it
    unit: str
    definition: str
    n: int = 0
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None


class LoadSummary(Record, frozen=True, kw_only=True):
    """`load-test --json`. `itl` is null unless per-chunk token counts are known; `gap` is between chunks.

    Latencies are those of the requests that succeeded; `*_with_failures` counts each failed one as endless,
    so a percentile that falls among them is null.
    """

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
    ttft_from_schedule: Spread = Spread()
    ttfa_from_schedule: Spread = Spread()
    e2e_from_schedule: Spread
    e2e_with_failures: Spread = Spread()
    error_latency: Spread
    user_tokens_per_s: Spread = Spread()  # tokens a second that one user sees after the first
    stages: dict[str, Spread] = {}  # pool_wait, connect, tls, headers, first_byte, transfer
    arrivals: Arrivals | None = None
    tokens: TokenCounts
    slo: SloResult | None = None
    server: ServerView | None = None
    course: tuple[Interval, ...] = ()
    style: str | None = None  # the other tool whose table `styled` holds
    styled: tuple[StyleRow, ...] = ()
    stopped: str | None = None  # the limit on failures that ended the load
    notes: tuple[str, ...] = ()
    errors: dict[str, str] = {}  # failure class -> first message seen
