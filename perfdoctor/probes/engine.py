"""The server's own numbers from its /metrics page, under names that are the same for every engine.

Which sample of which engine means what stands in data/engines.toml. Only the lines with those names reach the
parser, since a page is 50 kB; buckets of its histograms are read more rarely, as two readings are enough.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from perfdoctor.probes._buckets import bucket_names, read_buckets
from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable, counters, gauges
from perfdoctor.probes._subject import Subject

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 2.0
BUCKETS_EVERY = 5  # readings
FULLEST = ("kv_usage",)  # of several engines behind one page the fullest counts; all else adds up
ENABLE = {
    "llama.cpp": "start the server with --metrics",
    "sglang": "start the server with --enable-metrics",
    "ollama": "ollama exports no metrics; follow its log instead: --log FILE",
    "triton": "start the server without --allow-metrics=false, and name the port of its metrics",
}
UNITS = {"us": 1e-6, "ms": 1e-3}  # of a sample whose name says so; our own names say seconds
_UNIT = re.compile(r"_(us|ms)(?:_sum|_total)?$")
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

Aliases = Mapping[str, Sequence[str]]  # our name -> exact sample names, preferred first


@dataclass(frozen=True, slots=True)
class Page:
    """Sums over label sets by sample name, and the largest value of any."""

    sums: Mapping[str, float]
    largest: Mapping[str, float]


def load_aliases(text: str) -> dict[str, Aliases]:
    """Engine -> aliases of all its metrics."""
    tables = msgspec.toml.decode(text).items()
    return {engine: t.get("gauges", {}) | t.get("counters", {}) for engine, t in tables}


def sample_names(tables: Mapping[str, Aliases]) -> frozenset[bytes]:
    """All samples that any alias asks for, without the label that it may pick."""
    return frozenset(
        n.partition("{")[0].encode() for t in tables.values() for aliases in t.values() for n in aliases
    )


def wanted_lines(page: bytes, names: frozenset[bytes]) -> str:
    """The samples with these names, without comments, so that the parser sees nothing else."""
    kept = [line for line in page.split(b"\n") if line.split(b"{", 1)[0].split(b" ", 1)[0].rstrip() in names]
    return b"\n".join([*kept, b""]).decode(errors="replace")


def parse_page(text: str) -> Page:
    """A value that is no number (NaN of an empty gauge) is left out."""
    from prometheus_client.parser import text_string_to_metric_families

    sums: dict[str, float] = {}
    largest: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if math.isfinite(sample.value):
                for name in (sample.name, *_labelled(sample.name, sample.labels)):
                    sums[name] = sums.get(name, 0.0) + sample.value
                    largest[name] = max(largest.get(name, sample.value), sample.value)
    return Page(sums, largest)


def _labelled(name: str, labels: Mapping[str, str]) -> list[str]:
    """The sample's name with each of its labels, as an alias may ask for one."""
    return [f'{name}{{{key}="{value}"}}' for key, value in labels.items()]


def normalise(page: Page, aliases: Aliases) -> dict[str, float | None]:
    """Our names; the first alias that the page has gives the value, None when it has none of them."""
    values: dict[str, float | None] = {}
    for name, samples in aliases.items():
        source = page.largest if name in FULLEST else page.sums
        values[name] = next((source[s] * _factor(name, s) for s in samples if s in source), None)
    return values


def _factor(name: str, sample: str) -> float:
    """From the sample's unit to ours: seconds, where our name is one of seconds."""
    unit = _UNIT.search(sample) if name.endswith("_s") else None
    return UNITS[unit.group(1)] if unit else 1.0


def best_engine(page: Page, tables: Mapping[str, Aliases]) -> str | None:
    """The engine most of whose names are on the page; None when no name of any is."""
    found = {engine: sum(v is not None for v in normalise(page, t).values()) for engine, t in tables.items()}
    engine = max(found, key=lambda e: found[e], default=None)
    return engine if engine and found[engine] else None


def metrics_url(url: str) -> str:
    """/metrics stands beside /v1, not below it."""
    return url.rstrip("/").removesuffix("/v1").rstrip("/") + "/metrics"


class EngineReader:
    def __init__(self, subject: Subject, tables: Mapping[str, Aliases]) -> None:
        self._subject, self._tables = subject, tables
        self._names = sample_names(tables)
        self._client: httpx.Client | None = None
        self._engine: str | None = None
        self._reads = 0
        self.gaps: Sequence[Gap] = ()

    def read(self) -> Sequence[Reading]:
        if self._subject.url is None:
            raise NotYet("absent", "the server's address is not known yet")
        content = self._fetch(metrics_url(self._subject.url))
        page = parse_page(wanted_lines(content, self._names))
        self._engine = self._engine or best_engine(page, self._tables)
        if self._engine is None:
            raise NotYet("absent", "its /metrics page holds no name that is known here")
        aliases = self._tables[self._engine]
        return (Reading(normalise(page, aliases)), *self._buckets(content, aliases))

    def _buckets(self, content: bytes, aliases: Aliases) -> Sequence[Reading]:
        """One reading per histogram, now and then."""
        self._reads += 1
        if self._reads % BUCKETS_EVERY != 1:
            return ()
        names = bucket_names(aliases)
        wanted = frozenset(name.encode() for exact in names.values() for name in exact)
        found = read_buckets(wanted_lines(content, wanted), names)
        return [Reading(edges, {"histogram": name}, probe="engine.bucket") for name, edges in found.items()]

    def _fetch(self, url: str) -> bytes:
        answer = self._connect(url).get(url)
        if answer.status_code in (401, 403):
            raise Unavailable(
                "denied", f"{url} answered {answer.status_code}", "allow /metrics without a key"
            )
        if answer.status_code in (404, 405, 501):
            raise Unavailable(
                "absent", f"{url} answered {answer.status_code}", ENABLE.get(self._subject.engine)
            )
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


def _client(secure: bool, transport: httpx.BaseTransport | None = None) -> httpx.Client:
    """Without the proxies of the environment, as the load generator. Certificates cost 30 ms to load."""
    import httpx

    return httpx.Client(timeout=TIMEOUT_S, trust_env=False, verify=secure, transport=transport)


def open_engine(subject: Subject, stop: threading.Event) -> EngineReader:
    import prometheus_client.parser  # noqa: F401 - imports belong to opening, not to the first reading

    _client(secure=False).close()
    text = resources.files("perfdoctor").joinpath("data/engines.toml").read_text()
    return EngineReader(subject, load_aliases(text))


PROBE = Probe(
    name="engine", rate_hz=1.0, max_share=0.002, metrics=METRICS, open=open_engine, host=False, max_hz=2.0
)
