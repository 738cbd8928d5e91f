"""What each engine calls its numbers, read from data/engines.toml, and a page of metrics under our names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import msgspec

FULLEST = ("kv_usage",)  # of several engines behind one page the fullest counts; all else adds up
UNITS = {"us": 1e-6, "ms": 1e-3}  # of a sample whose name says so; our own names say seconds
PAGE = "/metrics"
_UNIT = re.compile(r"_(us|ms)(?:_sum|_total|_bucket)?$")

Aliases = Mapping[str, Sequence[str]]  # our name -> exact sample names, preferred first


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One engine. `absent` holds by reason the numbers it does not export; `none` says why it has no page of
    metrics at all; `page` is where it is, `enable` how to get it."""

    gauges: dict[str, list[str]] = {}
    counters: dict[str, list[str]] = {}
    absent: dict[str, list[str]] = {}
    page: str = PAGE
    none: str | None = None
    enable: str | None = None

    @property
    def aliases(self) -> Aliases:
        return {**self.gauges, **self.counters}

    def why_absent(self, name: str) -> str | None:
        return next((why for why, names in self.absent.items() if name in names), None)


@dataclass(frozen=True, slots=True)
class Page:
    """Sums over label sets by sample name, and the largest value of any."""

    sums: Mapping[str, float]
    largest: Mapping[str, float]


def load_tables() -> dict[str, Table]:
    """Engine -> its table."""
    text = resources.files("perfdoctor").joinpath("data/engines.toml").read_text()
    return msgspec.toml.decode(text, type=dict[str, Table])


def sample_names(tables: Mapping[str, Table]) -> frozenset[bytes]:
    """All samples that any alias asks for, without the label that it may pick."""
    return frozenset(
        n.partition("{")[0].encode() for t in tables.values() for names in t.aliases.values() for n in names
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
    return unit_s(sample) if name.endswith("_s") else 1.0


def unit_s(sample: str) -> float:
    """Seconds of one unit of a sample of time, by its name."""
    unit = _UNIT.search(sample.partition("{")[0])
    return UNITS[unit.group(1)] if unit else 1.0


def best_engine(page: Page, tables: Mapping[str, Table]) -> str | None:
    """The engine most of whose names are on the page; None when no name of any is."""
    found = {
        engine: sum(v is not None for v in normalise(page, table.aliases).values())
        for engine, table in tables.items()
    }
    engine = max(found, key=lambda e: found[e], default=None)
    return engine if engine and found[engine] else None


def metrics_url(url: str, page: str = PAGE) -> str:
    """The page of metrics stands beside /v1, not below it."""
    return url.rstrip("/").removesuffix("/v1").rstrip("/") + page
