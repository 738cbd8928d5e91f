"""Splits every steady request into disjoint spans, from the most direct source this run holds.

    due     sent    connected   arrived   started   tokenised   first token          last token    (server's)
     |client_wait|connect |network |server_queue|tokenise|prefill |      decode        |  network |
                                                                                      (client's) last token

Sources in order of trust: the server's own stamps, its histograms, timings it streams, the difference between
this load and one request at a time. What no source accounts for is left over and becomes `unexplained`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perfdoctor import stats
from perfdoctor.diagnosis import counted
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.model import RequestRecord, Sample

Part = tuple[str, float]

STAMPS = "the server's own stamps"
HISTOGRAMS = "the server's histograms"
STREAMED = "timings the server streams"
DIFFERENCE = "TTFT under load minus TTFT of one request at a time"
CLIENT = "the client's stamps"


@dataclass(frozen=True, slots=True)
class Split:
    """One request: its whole time from due to last token, and the parts of it that were accounted for."""

    record: RequestRecord
    total_s: float
    parts: Mapping[str, float]
    overlap_s: float = 0.0  # by how much the parts exceeded the whole before they were clipped


@dataclass(frozen=True, slots=True)
class Splits:
    """All complete steady requests. `source` says where queue, tokenise and prefill came from."""

    requests: tuple[Split, ...]
    source: str

    def mean(self, row: str) -> float:
        """Mean over all requests; a request without the row counts as zero seconds of it."""
        return stats.mean([s.parts.get(row, 0.0) for s in self.requests]) or 0.0

    def has(self, row: str) -> bool:
        return any(row in s.parts for s in self.requests)


def split_requests(obs: Observations) -> Splits:
    """NoValue when no steady request was completed."""
    return obs.once("spans", lambda: _split_requests(obs))


def _split_requests(obs: Observations) -> Splits:
    records = [
        r
        for r in obs.ok("steady")
        if r.sent_s is not None and r.first_token_s is not None and _end(r) > r.due_s
    ]
    if not records:
        raise NoValue("no steady request was completed")
    for attempt in (_by_stamps, _by_histograms, _by_streamed_timings, _by_difference):
        found = attempt(obs, records)
        if found is not None:
            return found
    splits = [_clip(r, [*_client_parts(r), ("decode", _decode(r))]) for r in records]
    return Splits(tuple(splits), CLIENT)


def _by_stamps(obs: Observations, records: Sequence[RequestRecord]) -> Splits | None:
    try:
        served = {s.labels.get("request", ""): s for s in obs.samples("serve")}
    except NoValue:
        return None
    if not any(str(r.id) in served for r in records):
        return None
    return Splits(tuple(_clip(r, _stamped_parts(r, served.get(str(r.id)))) for r in records), STAMPS)


STAMP_NAMES = ("arrived_s", "started_s", "tokenised_s", "first_token_s", "last_token_s")


def _stamped_parts(record: RequestRecord, sample: Sample | None) -> list[Part]:
    stamps = [sample.values.get(name) if sample else None for name in STAMP_NAMES]
    arrived, started, tokenised, first, last = stamps
    if arrived is None or started is None or first is None or last is None:
        return _client_parts(record)  # the server said nothing of this one: the rest stays unexplained
    tokenised = started if tokenised is None else tokenised
    return [
        *_client_parts(record),
        ("network", arrived - _on_the_wire(record)),
        ("server_queue", started - arrived),
        ("tokenise", tokenised - started),
        ("prefill", first - tokenised),
        ("decode", last - first),
        ("network", _end(record) - last),
    ]


def _by_histograms(obs: Observations, records: Sequence[RequestRecord]) -> Splits | None:
    """The histograms know sums only, so each request is given the window's mean proportions."""
    waiting = stats.mean([_until_first_token(r) for r in records])
    try:
        queue = counted.mean_of(obs, "queue")
        prefill = counted.mean_of(obs, "prefill")
    except NoValue:
        return None
    if not waiting:
        return None
    before, after = _outside_shares(obs, records)
    parts = [
        [
            *_client_parts(r),
            ("server_queue", _until_first_token(r) * queue / waiting),
            ("prefill", _until_first_token(r) * prefill / waiting),
            ("network", _until_first_token(r) * before + _decode(r) * after),
            ("decode", _decode(r) * (1 - after)),
        ]
        for r in records
    ]
    return Splits(tuple(_clip(r, p) for r, p in zip(records, parts, strict=True)), HISTOGRAMS)


def _outside_shares(obs: Observations, records: Sequence[RequestRecord]) -> tuple[float, float]:
    """Shares of the time to a first token, and of the time after it, that the server did not see.

    Nothing where the server is on this host, since no network is between, or where others' requests are in
    its histograms. A front end that is slow to send what the engine made counts here too.
    """
    if not obs.facts.target.remote:
        return 0.0, 0.0
    shares = []
    for name, seen in (("ttft", _until_first_token), ("decode", _decode)):
        here = stats.mean([seen(r) for r in records]) or 0.0
        try:
            foreign = counted.of_others_too(obs, len(records))
            there = here if foreign else counted.mean_of(obs, name)
        except NoValue:
            there = here
        shares.append(max(0.0, 1 - there / here) if here > 0 else 0.0)
    return shares[0], shares[1]


def _by_streamed_timings(obs: Observations, records: Sequence[RequestRecord]) -> Splits | None:
    told = [r for r in records if r.server_prefill_s is not None]
    if len(told) < len(records) / 2:
        return None
    return Splits(tuple(_clip(r, _streamed_parts(r)) for r in records), STREAMED)


def _streamed_parts(record: RequestRecord) -> list[Part]:
    """Time to the first token that the server did not spend on the prompt was spent waiting for it."""
    if record.server_prefill_s is None:
        return _client_parts(record)
    prefill = min(record.server_prefill_s, _until_first_token(record))
    decode = _decode(record)
    if record.server_decode_s is not None:
        decode = min(decode, record.server_decode_s)
    queue = _until_first_token(record) - prefill
    return [*_client_parts(record), ("server_queue", queue), ("prefill", prefill), ("decode", decode)]


def _by_difference(obs: Observations, records: Sequence[RequestRecord]) -> Splits | None:
    """At one user nothing can queue; under more, what TTFT grew by is taken for waiting."""
    alone: Callable[[RequestRecord], float]
    if obs.concurrency("steady") == 1:
        source, alone = CLIENT, _until_first_token
    else:
        baseline = [_until_first_token(r) for r in obs.ok("baseline") if r.first_token_s is not None]
        if not baseline:
            return None
        service = stats.mean(baseline) or 0.0
        source, alone = DIFFERENCE, lambda r: min(service, _until_first_token(r))
    splits = []
    for r in records:
        queue = _until_first_token(r) - alone(r)
        parts = [("server_queue", queue), ("prefill", alone(r)), ("decode", _decode(r))]
        splits.append(_clip(r, [*_client_parts(r), *parts]))
    return Splits(tuple(splits), source)


def _client_parts(record: RequestRecord) -> list[Part]:
    sent = _sent(record)
    return [("client_wait", sent - record.due_s), ("connect", _on_the_wire(record) - sent)]


def _sent(record: RequestRecord) -> float:
    return record.due_s if record.sent_s is None else record.sent_s


def _on_the_wire(record: RequestRecord) -> float:
    """When the request could leave: connected, or sent on a kept connection."""
    sent = _sent(record)
    return sent if record.connected_s is None else max(sent, record.connected_s)


def _until_first_token(record: RequestRecord) -> float:
    wire = _on_the_wire(record)
    return max(0.0, (wire if record.first_token_s is None else record.first_token_s) - wire)


def _decode(record: RequestRecord) -> float:
    return max(0.0, _end(record) - (_end(record) if record.first_token_s is None else record.first_token_s))


def _end(record: RequestRecord) -> float:
    """The last token; without one the request has no length."""
    return record.due_s if record.last_token_s is None else record.last_token_s


def _clip(record: RequestRecord, parts: Sequence[Part]) -> Split:
    """Parts in order, each at least nothing and at most what is left of the whole."""
    total = _end(record) - record.due_s
    left, overlap, kept = total, 0.0, dict[str, float]()
    for row, seconds in parts:
        wanted = max(0.0, seconds)
        taken = min(wanted, left)
        overlap += wanted - taken
        left -= taken
        kept[row] = kept.get(row, 0.0) + taken
    return Split(record, total, kept, overlap)
