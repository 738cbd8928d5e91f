"""The report as one HTML file that needs no network, no script and no other file.

The template lays out; this module only gathers what it lays out. Everything from outside is escaped by
jinja2, after unprintable characters were made visible.
"""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perfdoctor import units
from perfdoctor.literal import visible
from perfdoctor.model import Diagnosis
from perfdoctor.reports import _histogram, _load_table, _load_words, _rows, _timeline, _words
from perfdoctor.reports._bundle import Bundle, Report
from perfdoctor.reports._stacks import top_frames

Tile = tuple[str, str, str]  # name, value, detail


def render(bundle: Bundle) -> str:
    """The whole page. A run without a diagnosis, a request or a sample gives a shorter page."""
    timeline = _timeline.draw(bundle)
    page: str = (
        _environment()
        .get_template("report.html.j2")
        .render(
            bundle=bundle,
            diagnosis=bundle.diagnosis,
            summary=bundle.summary,
            facts=bundle.facts,
            tiles=tiles(bundle),
            bars=_rows.bars(bundle.diagnosis.ledger) if bundle.diagnosis else (),
            distributions=_histogram.distributions(bundle.requests),
            timeline=timeline,
            frames=top_frames(bundle.stacks),
            fact_rows=fact_rows(bundle),
        )
    )
    return page


REPORT = Report("html", render)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("perfdoctor.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {
        "seconds": units.seconds,
        "share": units.share,
        "number": units.number,
        "quantity": units.quantity,
        "svg": Markup,
    }
    environment.globals |= {"words": _words, "rows": _rows, "load": _load_table, "told": _load_words}
    return environment


def _shown(value: Any) -> Any:
    """Applied to every `{{ }}`: text loses its power over terminals and readers, missing shows as `-`."""
    if value is None:
        return units.MISSING
    return visible(value) if type(value) is str else value


def tiles(bundle: Bundle) -> tuple[Tile, ...]:
    """The few numbers a reader wants first; those that are missing are left out."""
    made: list[Tile] = []
    if bundle.diagnosis is not None:
        made += _finding_tiles(bundle.diagnosis)
    if bundle.summary is not None:
        for name, spread in (
            ("End to end", bundle.summary.e2e),
            ("Time to first token", bundle.summary.ttft),
            ("Time per token", bundle.summary.tpot),
        ):
            if spread.p50 is not None:
                made.append((name, units.seconds(spread.p50), f"median; p95 {units.seconds(spread.p95)}"))
        rate = bundle.summary.rates
        if rate.output_tokens_per_s is not None:
            detail = f"output tokens/s; {units.number(rate.requests_per_s)} requests/s"
            made.append(("Throughput", units.number(rate.output_tokens_per_s), detail))
    return tuple(made)


def _finding_tiles(diagnosis: Diagnosis) -> list[Tile]:
    made = []
    if diagnosis.findings and diagnosis.findings[0].share is not None:
        first = diagnosis.findings[0]
        made.append(("Largest cause", units.share(first.share), f"{_words.OF[first.of]}: {first.rule}"))
    offer = _words.first_fix(diagnosis)
    if offer is not None and offer.bound is not None:
        low, high = (units.number(x) for x in offer.bound)
        value = f"{low}x" if low == high else f"{low}-{high}x"
        made.append(("First fix gains at most", value, offer.id))
    return made


def fact_rows(bundle: Bundle) -> tuple[tuple[str, str], ...]:
    """What was measured, where and how; unknown facts are left out."""
    facts, host, target = bundle.facts, bundle.facts.host, bundle.facts.target
    gpus = ", ".join(f"{g.name} {units.size_bytes(g.memory_bytes)}" for g in host.gpus)
    memory = units.size_bytes(host.memory_bytes) + " memory" if host.memory_bytes else ""
    cores = f"{units.number(host.cores)} cores" if host.cores else ""
    duration = _words.run_seconds(facts)
    rows = (
        ("Command", " ".join(facts.argv)),
        ("Run", facts.run),
        ("Began", facts.wall_zero),
        ("Duration", "" if duration is None else units.seconds(duration)),
        ("Model", target.model or ""),
        ("Weights", {True: "random", False: "real", None: ""}[target.weights_random]),
        ("Size", units.size_bytes(target.weights_bytes) if target.weights_bytes else ""),
        ("Parameters", units.number(target.parameters) if target.parameters else ""),
        ("Number format", target.dtype or ""),
        ("Device", target.device or ""),
        ("Engine", f"{target.engine} {target.engine_version or ''}"),
        ("Address", target.url),
        ("Load", _load_words.shape(facts.scenario)),
        ("Host", ", ".join(p for p in (host.hostname, host.cpu, cores, memory) if p)),
        ("GPUs", gpus),
        ("System", ", ".join(p for p in (host.kernel, f"Python {host.python}" if host.python else "") if p)),
        ("perfdoctor", facts.perfdoctor),
    )
    ceilings = tuple(
        (f"Ceiling: {name.removesuffix('_bytes_per_s').replace('_', ' ')}", units.quantity(value, "bytes/s"))
        for name, value in facts.calibration.items()
        if name.endswith("_bytes_per_s")
    )
    return tuple((name, value) for name, value in rows + ceilings if value.strip())
