"""A load test's numbers in words, the same for every report."""

from __future__ import annotations

from collections.abc import Mapping

from perfdoctor import units
from perfdoctor.latency import DEFINITIONS
from perfdoctor.model import Arrivals, LoadSummary, RequestCounts, Scenario, ServerView, SloResult, SloTerm

STAGE_WORDS = {
    "pool_wait": "pool wait",
    "connect": "connect",
    "tls": "TLS",
    "headers": "to the head",
    "first_byte": "to the body",
    "transfer": "body",
}
MET = {True: "met", False: "missed", None: "no value"}


def shape(scenario: Scenario) -> str:
    """`4 at once, 48 tokens each`; `5 requests/s, poisson`."""
    load = scenario.load
    if load.arrival == "closed":
        text = f"{units.number(load.concurrency)} at once"
    else:
        text = f"{units.number(load.rate)} requests/s, {load.arrival}" if load.rate else load.arrival
    return text if scenario.target.api == "http" else f"{text}, {load.prompts.output_tokens} tokens each"


def counted(requests: RequestCounts) -> str:
    """`197 of 200 ok, 3 failed: truncated 2, http_429 1`."""
    failed = sum(requests.failed.values())
    parts = [f"{units.number(requests.ok)} of {units.number(requests.total)} ok"]
    classes = ", ".join(f"{name} {units.number(n)}" for name, n in sorted(requests.failed.items()))
    parts.append(f"{units.number(failed)} failed" + (f": {classes}" if classes else ""))
    for value, what in (
        (requests.not_sent, "not sent"),
        (requests.censored - requests.not_sent, "still open at the end"),
        (requests.late, "sent late"),
        (requests.empty_answers, "answers without a token"),
        (requests.redialled, "sent again on a new connection"),
    ):
        if value:
            parts.append(f"{units.number(value)} {what}")
    return ", ".join(parts)


def rates(summary: LoadSummary) -> str:
    rate = summary.rates
    if rate.requests_per_s is None:
        return "none: there was no time in which the load was the one asked for"
    parts = [f"{units.number(rate.requests_per_s)} requests/s"]
    if rate.output_tokens_per_s is not None:
        peak = rate.peak_output_tokens_per_s
        highest = "" if peak is None else f" (peak {units.number(peak)})"
        parts.append(f"{units.number(rate.output_tokens_per_s)} output tokens/s{highest}")
    if rate.input_tokens_per_s is not None:
        parts.append(f"{units.number(rate.input_tokens_per_s)} prompt tokens/s")
    if summary.user_tokens_per_s.p50 is not None:
        parts.append(f"{units.number(summary.user_tokens_per_s.p50)} tokens/s for one user (median)")
    if rate.asked_per_s is not None:
        parts.append(f"asked for {units.number(rate.asked_per_s)} requests/s")
    if rate.in_flight_mean is not None:
        parts.append(f"{units.number(rate.in_flight_mean)} in flight on average")
    return ", ".join(parts)


def facts(summary: LoadSummary) -> list[tuple[str, str]]:
    """(label, text) of what stands between the rates and the latencies, as far as there is any."""
    found = []
    if summary.arrivals is not None:
        found.append(("Arrivals", _arrivals(summary.arrivals)))
    if summary.stages:
        medians = [f"{STAGE_WORDS[name]} {units.seconds(s.p50)}" for name, s in summary.stages.items()]
        found.append(("Stages", ", ".join(medians) + " (medians)"))
    if summary.server is not None:
        found.append(("Server", _server(summary.server, summary)))
    return found


def _arrivals(arrivals: Arrivals) -> str:
    word = arrivals.status.replace("_", " ")
    if arrivals.status == "unknown":
        return f"{arrivals.process}, {word}: {arrivals.reason}"
    numbers = (
        f"{units.number(arrivals.sent_per_s)}/s sent of {units.number(arrivals.asked_per_s)} scheduled, "
        f"CV of the gaps {units.number(arrivals.gap_cv)}, "
        f"late p99 {units.seconds(arrivals.late_p99_s)}"
    )
    return f"{arrivals.process}, {word}: {arrivals.reason or numbers}"


def _server(server: ServerView, summary: LoadSummary) -> str:
    """Means beside means: histograms tell no more."""
    if server.missing:
        return f"its own view is missing: {server.missing}"
    pairs = [
        ("TTFT", server.ttft_mean_s, summary.ttft.mean),
        ("end to end", server.e2e_mean_s, summary.e2e.mean),
    ]
    parts = [
        f"mean {name} {units.seconds(theirs)} by its own count, {units.seconds(ours)} here"
        for name, theirs, ours in pairs
        if theirs is not None
    ]
    if server.queue_mean_s is not None:
        parts.append(f"{units.seconds(server.queue_mean_s)} of it queue")
    if server.output_tokens is not None:
        here = server.output_tokens_here
        arrived = "" if here is None else f", {units.number(here)} arrived here"
        parts.append(f"{units.number(server.output_tokens)} tokens counted{arrived}")
    if bars := lies_between(server.percentiles):
        parts.append(f"by its histograms {bars}")
    parts += server.doubts
    return "; ".join(parts) or "it exports none of the times that are compared here"


def lies_between(percentiles: Mapping[str, tuple[float, float | None]]) -> str:
    """`ttft p50 250-500 ms, p95 above 2.5 s; queue ...`: a bucket is all that a histogram knows."""
    by_name: dict[str, list[str]] = {}
    for key, (low, high) in percentiles.items():
        name, label, _ = key.split("_")
        where = f"above {units.seconds(low)}" if high is None else units.interval(low, high, "s")
        by_name.setdefault(name, []).append(f"{label} {where}")
    return "; ".join(f"{name} {', '.join(parts)}" for name, parts in by_name.items())


def slo_rows(slo: SloResult) -> list[tuple[str, str, str]]:
    """(limit, value, met | missed | no value and why)."""
    return [
        (t.text, term_value(t), f"{MET[t.met]}: {t.missing}" if t.missing else MET[t.met]) for t in slo.terms
    ]


def slo_title(slo: SloResult) -> str:
    return "; ".join(part for part in (slo_word(slo), slo_goodput(slo)) if part)


def slo_word(slo: SloResult) -> str:
    return "met" if slo.met else "missed" if slo.met is False else "not decided: a limit has no value here"


def slo_style(slo: SloResult) -> str:
    return "clear" if slo.met else "hit" if slo.met is False else "unknown"


def slo_goodput(slo: SloResult) -> str:
    """Empty where no request ended."""
    parts = []
    if slo.goodput_per_s is not None:
        parts.append(f"goodput {units.number(slo.goodput_per_s)} requests/s")
    if slo.good_share is not None:
        parts.append(f"{units.share(slo.good_share)} of the requests good")
    return ", ".join(parts)


def term_value(term: SloTerm) -> str:
    if term.value is None or isinstance(term.value, str):
        return term.value or units.MISSING
    if term.metric == "error_rate" or term.metric.endswith("_share"):
        return units.share(term.value)
    timed = term.metric.rpartition("_")[0] in DEFINITIONS and not term.metric.startswith("user_tokens")
    return units.seconds(term.value) if timed else units.number(term.value)
