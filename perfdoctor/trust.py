"""Can this measurement carry a verdict? Judges the client, before anything is said about the server.

Pure: facts and records in, Trust out. A slow client looks exactly like a slow server, so when the client was
the bottleneck the answer is `invalid` and no verdict follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfdoctor import latency, stats, units
from perfdoctor.model import ClientFacts, RequestRecord, Trust

CPU_INVALID = 0.80  # of one core: an event loop that busy queues its own reads
LAG_DEGRADED = 0.05  # loop lag p99 as a share of the median end-to-end time
LAG_INVALID = 0.20  # the same: a fifth of what is measured is the client's
WAIT_INVALID = 0.25  # share of wall time the driver's thread was runnable but had no CPU
LATE_DEGRADED = 0.10  # send lateness p99 as a share of the median end-to-end time
TIMER_S = 0.001  # loop timers count whole milliseconds, so lag below one cannot be told from none
FAILED_DEGRADED = 0.01
FAILED_INVALID = 0.50


def judge(client: ClientFacts, records: Sequence[RequestRecord]) -> Trust:
    """`error_s` bounds the client's own timing error: loop lag at the 99th percentile plus a timer tick."""
    lag_s = client.loop_lag_p99_s
    steady = [r for r in records if r.phase == "steady"] or list(records)
    e2e = stats.percentile(latency.present(latency.e2e(r) for r in latency.ok_records(steady)), 0.5)
    invalid: list[str] = []
    degraded: list[str] = []

    if client.cpu_share is not None and client.cpu_share >= CPU_INVALID:
        invalid.append(f"the load generator used {units.share(client.cpu_share)} of a core")
    if client.runq_wait_share is not None and client.runq_wait_share >= WAIT_INVALID:
        invalid.append(
            f"the load generator waited for a CPU {units.share(client.runq_wait_share)} of the time"
        )
    _grade(client.loop_lag_p99_s, e2e, LAG_DEGRADED, LAG_INVALID, "event loop lag p99", degraded, invalid)
    _grade(client.send_late_p99_s, e2e, LATE_DEGRADED, LAG_INVALID, "late sends p99", degraded, invalid)
    _grade_failures(steady, degraded, invalid)

    return Trust(
        status="invalid" if invalid else "degraded" if degraded else "valid",
        error_s=None if lag_s is None else lag_s + TIMER_S,
        reasons=tuple(invalid + degraded),
    )


def _grade(
    value_s: float | None,
    e2e_s: float | None,
    soft: float,
    hard: float,
    what: str,
    degraded: list[str],
    invalid: list[str],
) -> None:
    if value_s is None or not e2e_s:
        return
    if value_s >= soft * e2e_s:
        text = f"{what} is {units.seconds(value_s)}, {units.share(value_s / e2e_s)} of a median request"
        (invalid if value_s >= hard * e2e_s else degraded).append(text)


def _grade_failures(records: Sequence[RequestRecord], degraded: list[str], invalid: list[str]) -> None:
    failed = [r for r in records if r.outcome != "ok"]
    if not records or not failed:
        return
    worst = max({r.outcome for r in failed}, key=lambda o: sum(r.outcome == o for r in failed))
    text = f"{len(failed)} of {len(records)} requests failed, most often {worst}"
    rate = len(failed) / len(records)
    if rate >= FAILED_INVALID:
        invalid.append(text)
    elif rate >= FAILED_DEGRADED:
        degraded.append(text)
