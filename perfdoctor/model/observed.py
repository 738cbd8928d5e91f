"""Raw observations: requests and samples, as instants and readings."""

from __future__ import annotations

from typing import Literal

from perfdoctor.model._record import PhaseName, ProbeStatus, Record


class RequestRecord(Record, frozen=True, kw_only=True):
    """One request as instants on the run's clock; every duration is computed later (see latency.py).

    A None instant was not reached: `first_token_s` when no payload came; `dialled_s`, `tcp_s` and
    `connected_s` on a reused connection; `sent_s` when the run ended before its turn. `token_at_s` holds the
    arrival of each chunk that carried generated payload.
    """

    id: int
    phase: PhaseName
    due_s: float  # when the schedule wanted it sent
    sent_s: float | None = None  # handed to the transport: every latency "from sent" includes the connect
    dialled_s: float | None = None  # the connect began, after any wait for the dial limit
    tcp_s: float | None = None  # TCP stands; a TLS handshake begins
    connected_s: float | None = None  # the new connection can be written to
    written_s: float | None = None  # the request's bytes were given to the socket
    headers_s: float | None = None
    first_event_s: float | None = None
    first_token_s: float | None = None
    first_answer_s: float | None = None  # first chunk that is no reasoning
    last_token_s: float | None = None
    end_s: float | None = None
    token_at_s: tuple[float, ...] = ()
    token_counts: tuple[int, ...] = ()  # tokens in each of those chunks; empty: not known
    first_text: str | None = None  # at most 24 characters: tells a prompt's tail from a token
    head_chunks: int = 0  # leading chunks found to be the prompt's own tail, already left out above
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    token_source: Literal["usage", "per_chunk", "tokenizer", "chunks"] | None = None
    asked_tokens: int | None = None
    prompt_hash: str | None = None  # 16 hex digits of the request's content; equal: the same prompt
    turn: int | None = None  # of a conversation, from 1
    kind: str | None = None  # of an experiment: usual, one_token, long_prompt, repeated
    finish_reason: str | None = None
    status: int | None = None  # HTTP status; None when no answer came
    outcome: str = "ok"  # or a failure class, see design section 6
    error: str | None = None
    retry_after_s: float | None = None  # as the server asked for with a 429 or 503
    body_bytes: int | None = None  # of the answer's body, as received
    reads: int | None = None  # pieces the body came in, as far as the transport sees them
    server_prefill_s: float | None = None  # as told by the server inside the stream (llama.cpp `timings`)
    server_decode_s: float | None = None
    reused: bool = False  # sent on a kept-alive connection
    redialled: bool = False  # that connection was dead; sent again once on a new one
    censored: bool = False  # still open, or never sent, when the run ended
    worker: int = 0  # the driver process that sent it


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
    gaps: dict[str, str] = {}  # of a probe that works: metrics that it cannot read here, and why
    cost_s: float = 0.0  # sum over the run
    late_max_s: float = 0.0
    samples: int = 0
    errors: int = 0
