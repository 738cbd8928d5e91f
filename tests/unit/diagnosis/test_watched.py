"""Traffic of others, judged by what a window added to the server's own counters."""

from __future__ import annotations

import pytest

from perfdoctor.diagnosis.pipeline import diagnose
from perfdoctor.model import Diagnosis, Load, Phase, RunFacts, Sample, Scenario, TargetFacts
from tests.factories import counters, gauges

WATCH = Phase(name="watch", start_s=20.0, end_s=60.0)
# per second: 2 requests of 3 s, of which 1.5 s queue, 0.5 s prefill and 1 s decode
BUSY = {
    "requests": 2.0, "e2e_sum_s": 6.0, "e2e_count": 2.0, "queue_sum_s": 3.0, "queue_count": 2.0,
    "prefill_sum_s": 1.0, "prefill_count": 2.0, "decode_sum_s": 2.0, "decode_count": 2.0,
}  # fmt: skip


def judged(samples: list[Sample]) -> Diagnosis:
    facts = RunFacts(
        run="a-run",
        scenario=Scenario(load=Load(arrival="none", duration_s=40.0)),
        target=TargetFacts(kind="endpoint", url="http://h:8000", engine="e"),
        phases=(WATCH,),
    )
    return diagnose(facts, "complete", [], samples)


def value(found: Diagnosis, name: str) -> float | None:
    return {s.name: s.value for s in found.signals}[name]


def test_rows_are_means_of_what_was_added():
    """Half of each request is queue, whatever the totals since the start say."""
    found = judged(counters("engine", every_s=1.0, **BUSY))

    assert {"server_queue": 1.5, "prefill": 0.5, "decode": 1.0, "unexplained": 0.0} == pytest.approx(
        {row.row: row.seconds for row in found.ledger.mean}
    )
    assert 80 == pytest.approx(value(found, "drive.requests"))
    assert 0.5 == pytest.approx(value(found, "server.queue.share"))


def test_a_serial_server_is_found_without_load():
    """One at a time, three waiting: seen in the gauges alone, where there are no histograms."""
    found = judged(gauges("engine", every_s=1.0, running=1.0, waiting=3.0))

    assert 0.75 == value(found, "server.queue.share")
    assert ("found", "scheduling") == (found.verdict.status, found.verdict.cls)


def test_a_log_tells_what_the_metrics_do_not():
    """Times of ended requests and preemptions, of a server whose /metrics is closed."""
    log = {
        "prefill_sum_s": 1.0,
        "prefill_count": 2.0,
        "decode_sum_s": 2.0,
        "decode_count": 2.0,
        "preemptions": 0.5,
    }

    found = judged(counters("log", every_s=1.0, **log))

    assert (20, 0.25) == (value(found, "engine.preemptions"), value(found, "engine.preempted.share"))
    assert 80 == pytest.approx(value(found, "drive.requests"))


def test_an_idle_server_is_no_traffic_and_not_ok():
    """Counters that do not move tell nothing of how the server would do."""
    still = counters("engine", every_s=1.0, **dict.fromkeys(BUSY, 0.0))

    found = judged(still + gauges("engine", every_s=1.0, running=0.0, waiting=0.0))

    assert "insufficient_load" == found.verdict.status
    assert found.verdict.summary.startswith("No traffic")
    assert found.next.endswith("--no-load --duration 2m")


def test_totals_since_the_start_are_never_judged():
    """One scrape: a thousand preemptions, of which nobody knows when."""
    once = [s for s in counters("engine", preemptions=50.0, requests=2.0) if s.at_s == 20.0]

    found = judged(once)

    assert value(found, "engine.preempted.share") is None
    assert "found" != found.verdict.status


def test_a_server_without_counters_is_not_called_healthy():
    """Nothing is known of its requests: neither well nor idle."""
    assert "insufficient_evidence" == judged([]).verdict.status
