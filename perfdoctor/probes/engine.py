"""The server's own numbers from its /metrics page, under names that are the same for every engine.

Which sample of which engine means what stands in data/engines.toml. Only the lines with those names reach the
parser, since a page is 50 kB.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perfdoctor.probes._buckets import bucket_names, read_buckets
from perfdoctor.probes._engine_table import (
    Aliases,
    Table,
    best_engine,
    load_tables,
    metrics_url,
    normalise,
    parse_page,
    sample_names,
    wanted_lines,
)
from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable, counters, gauges
from perfdoctor.probes._subject import Subject

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 2.0
CHECK = "curl -s URL/metrics | grep NAME    (NAME: see data/engines.toml)"

_GAUGES = {
    "running": ("", "requests being served"),
    "waiting": ("", "requests queued inside the server"),
    "kv_usage": ("share", "KV cache in use; of several engines the fullest"),
}
_COUNTERS = {
    "preemptions": ("", "requests thrown out of the KV cache and started over"),
    "prompt_tokens": ("tokens", "prompt tokens received"),
    "output_tokens": ("tokens", "tokens generated"),
    "requests": ("", "requests finished"),
    "queue_sum_s": ("s", "time requests waited before their prefill began, added up"),
    "queue_count": ("", "requests in queue_sum_s"),
    "prefill_sum_s": ("s", "time of prefills added up"),
    "prefill_count": ("", "requests in prefill_sum_s"),
    "decode_sum_s": ("s", "time of decoding added up"),
    "decode_count": ("", "requests in decode_sum_s"),
    "ttft_sum_s": ("s", "time to first token as the server saw it, added up"),
    "ttft_count": ("", "requests in ttft_sum_s"),
    "e2e_sum_s": ("s", "time of whole requests as the server saw it, added up"),
    "e2e_count": ("", "requests in e2e_sum_s"),
    "itl_sum_s": ("s", "time between tokens added up"),
    "itl_count": ("", "gaps in itl_sum_s"),
    "prefix_hits": ("tokens", "prompt tokens found in the prefix cache"),
    "prefix_queries": ("tokens", "prompt tokens looked up in the prefix cache"),
    "steps": ("", "forward passes of the engine"),
}
METRICS = (
    *gauges("engine", CHECK, _GAUGES),
    *counters("engine", CHECK, _COUNTERS),
    *counters(
        "engine.bucket",
        "curl -s URL/metrics | grep NAME_bucket",
        {"le": ("", "observations up to the edge that is the value's name, of the labelled histogram")},
    ),
)


class EngineReader:
    def __init__(self, subject: Subject, tables: Mapping[str, Table]) -> None:
        self._subject, self._tables = subject, tables
        self._names = sample_names(tables)
        self._client: httpx.Client | None = None
        self._engine: str | None = None
        self._given: set[str] = set()
        self._has_buckets = False

    def read(self) -> Sequence[Reading]:
        if self._subject.url is None:
            raise NotYet("absent", "the server's address is not known yet")
        told = self._tables.get(self._subject.engine, Table())
        content = self._fetch(metrics_url(self._subject.url, told.page), told)
        page = parse_page(wanted_lines(content, self._names))
        self._engine = self._engine or best_engine(page, self._tables)
        if self._engine is None:
            raise NotYet("absent", "its page of metrics holds no name that is known here", told.enable)
        aliases = self._tables[self._engine].aliases
        values = normalise(page, aliases)
        self._given |= {name for name, value in values.items() if value is not None}
        return (Reading(values), *self._buckets(content, aliases))

    @property
    def gaps(self) -> Sequence[Gap]:
        """Numbers that the engine does not export, each with its reason; none before the engine is known."""
        if self._engine is None:
            return ()
        table = self._tables[self._engine]
        missing = [name for name in (*_GAUGES, *_COUNTERS) if name not in self._given]
        found = [Gap(name, _why_missing(self._engine, table, name)) for name in missing]
        return found if self._has_buckets else [*found, Gap("bucket", "it exports no histograms")]

    def _buckets(self, content: bytes, aliases: Aliases) -> Sequence[Reading]:
        """One reading per histogram, as often as all else: phases begin and end at any time."""
        names = bucket_names(aliases)
        wanted = frozenset(name.encode() for exact in names.values() for name in exact)
        found = read_buckets(wanted_lines(content, wanted), names)
        self._has_buckets |= bool(found)
        return [Reading(edges, {"histogram": name}, probe="engine.bucket") for name, edges in found.items()]

    def _fetch(self, url: str, told: Table) -> bytes:
        answer = self._connect(url).get(url)
        if answer.status_code in (401, 403):
            raise Unavailable(
                "denied", f"{url} answered {answer.status_code}", "allow /metrics without a key"
            )
        if answer.status_code in (404, 405, 501):
            raise Unavailable("absent", told.none or f"{url} answered {answer.status_code}", told.enable)
        answer.raise_for_status()
        return answer.content

    def _connect(self, url: str) -> httpx.Client:
        if self._client is None:
            way = self._subject.transport
            self._client = _client(not url.startswith("http:"), way(url) if way else None)
        return self._client

    def close(self) -> None:
        if self._client:
            self._client.close()


def _why_missing(engine: str, table: Table, name: str) -> str:
    if why := table.why_absent(name):
        return why
    samples = table.aliases.get(name)
    return f"this version's page has no {samples[0]}" if samples else f"{engine} exports no such number"


def _client(secure: bool, transport: httpx.BaseTransport | None = None) -> httpx.Client:
    """Without the proxies of the environment, as the load generator. Certificates cost 30 ms to load."""
    import httpx

    return httpx.Client(timeout=TIMEOUT_S, trust_env=False, verify=secure, transport=transport)


def open_engine(subject: Subject, stop: threading.Event) -> EngineReader:
    import prometheus_client.parser  # noqa: F401 - imports belong to opening, not to the first reading

    _client(secure=False).close()
    return EngineReader(subject, load_tables())


PROBE = Probe(
    name="engine", rate_hz=1.0, max_share=0.002, metrics=METRICS, open=open_engine, host=False, max_hz=2.0
)
