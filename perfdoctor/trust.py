"""Can this measurement carry a verdict? Judges the client, before anything is said about the server.

Pure: facts and records in, Trust out. A slow client looks exactly like a slow server, so when the client was
the bottleneck the answer is `invalid` and no verdict follows. `degraded`: the numbers stand within `error_s`,
or something about the load must be known to read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfdoctor import latency, stats, units
from perfdoctor.model import Arrivals, ClientFacts, RequestRecord, Trust

CPU_INVALID = 0.80  # of one core: an event loop that busy queues its own reads; a guess
WAIT_INVALID = 0.25  # share of wall time the driver's thread was runnable but had no CPU; a guess
# Shares of the median end-to-end time; a twentieth is below what two runs differ by anyway, and of a fifth
# nobody would say that the server took it.
LAG_DEGRADED = 0.05
LAG_INVALID = 0.20
LATE_DEGRADED = 0.10  # a late send moves a request, a late read stretches it
PAUSE_DEGRADED = 0.05  # the longest pause of the garbage collector; a single one harms a tail, not a median
FIRST_TOKEN_DEGRADED = 0.20  # the read lag as a share of the median time to first token; a guess
PAUSE_NOTED_S = 0.001  # a shorter one is what any process on a shared machine meets now and then; a guess
HEADROOM_DEGRADED = 0.90  # of the descriptors, or of the local ports; a guess
FAILED_DEGRADED = 0.01
FAILED_INVALID = 0.50
OPEN_DEGRADED = 0.01  # requests cut off by the end of the load: the slowest are missing from every percentile
TIMER_S = 0.001  # loop timers count whole milliseconds, so a lag by them below one cannot be told from none


@dataclass(frozen=True, slots=True)
class Measured:
    """What the client's errors are held against: medians of the requests that succeeded, and the others."""

    e2e_p50_s: float | None = None
    ttft_p50_s: float | None = None
    total: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)  # by outcome, censored ones left out
    cut_off: int = 0  # still open when the load ended


def judge(client: ClientFacts, records: Sequence[RequestRecord], arrivals: Arrivals | None = None) -> Trust:
    """The verdict on a run's steady phase, or on everything where there is none."""
    steady = [r for r in records if r.phase == "steady"] or list(records)
    answered = latency.ok_records(steady)
    measured = Measured(
        e2e_p50_s=stats.percentile(latency.present(map(latency.e2e, answered)), 0.5),
        ttft_p50_s=stats.percentile(latency.present(map(latency.ttft, answered)), 0.5),
        total=len(steady),
        failed=Counter(r.outcome for r in steady if r.outcome != "ok" and not r.censored),
        cut_off=sum(r.censored and r.sent_s is not None for r in steady),
    )
    return weigh(client, measured, arrivals)


def weigh(client: ClientFacts, measured: Measured, arrivals: Arrivals | None = None) -> Trust:
    """`error_s` bounds the client's own timing error: how long a chunk waits at the 99th percentile.

    Unknown values accuse nobody.
    """
    invalid: list[str] = []
    degraded: list[str] = []
    _weigh_processor(client, invalid)
    _weigh_lag(client, measured, degraded, invalid)
    for what, used, limit in (
        ("open files", client.fds_open, client.fds_limit),
        ("local ports", client.ports_used, client.ports_limit),
    ):
        _weigh_headroom(what, used, limit, measured, degraded, invalid)
    if arrivals and arrivals.status == "deviates":
        degraded.append(f"the load is not the one asked for: {arrivals.reason}")
    _weigh_failures(measured, degraded, invalid)
    return Trust(
        status="invalid" if invalid else "degraded" if degraded else "valid",
        error_s=_error_s(client),
        reasons=tuple(invalid + degraded),
    )


def _error_s(client: ClientFacts) -> float | None:
    if client.read_lag_p99_s is not None:
        return client.read_lag_p99_s
    return None if client.loop_lag_p99_s is None else client.loop_lag_p99_s + TIMER_S


def _weigh_processor(client: ClientFacts, invalid: list[str]) -> None:
    if client.cpu_share is not None and client.cpu_share >= CPU_INVALID:
        invalid.append(f"the load generator used {units.share(client.cpu_share)} of a core")
    if client.runq_wait_share is not None and client.runq_wait_share >= WAIT_INVALID:
        invalid.append(
            f"the load generator waited for a CPU {units.share(client.runq_wait_share)} of the time"
        )


def _weigh_lag(client: ClientFacts, measured: Measured, degraded: list[str], invalid: list[str]) -> None:
    """Times of the client as shares of the times that it measured."""
    read_s, loop_s = client.read_lag_p99_s, client.loop_lag_p99_s
    lag_s, what = (loop_s, "event loop lag p99") if read_s is None else (read_s, "read lag p99")
    pause_s = client.gc_pause_max_s if (client.gc_pause_max_s or 0.0) >= PAUSE_NOTED_S else None
    for value_s, name, soft, hard in (
        (lag_s, what, LAG_DEGRADED, LAG_INVALID),
        (client.send_late_p99_s, "late sends p99", LATE_DEGRADED, LAG_INVALID),
        (pause_s, "longest pause of the garbage collector", PAUSE_DEGRADED, None),
    ):
        share = _share(value_s, measured.e2e_p50_s)
        if share is not None and share >= soft:
            text = f"{name} is {units.seconds(value_s)}, {units.share(share)} of a median request"
            (invalid if hard is not None and share >= hard else degraded).append(text)
    share = _share(lag_s, measured.ttft_p50_s)
    if share is not None and share >= FIRST_TOKEN_DEGRADED:
        degraded.append(f"{what} is {units.share(share)} of a median time to first token")


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _weigh_headroom(
    what: str,
    used: int | None,
    limit: int | None,
    measured: Measured,
    degraded: list[str],
    invalid: list[str],
) -> None:
    """Used up and connects failed: then it was the client that had none to connect with."""
    share = _share(used, limit)
    if share is None or share < HEADROOM_DEGRADED:
        return
    exhausted = share >= 1 and measured.failed.get("connect")
    (invalid if exhausted else degraded).append(f"the load generator used {used} of its {limit} {what}")


def _weigh_failures(measured: Measured, degraded: list[str], invalid: list[str]) -> None:
    total, failed = measured.total, sum(measured.failed.values())
    if failed:
        worst = max(measured.failed, key=lambda outcome: measured.failed[outcome])
        text = f"{failed} of {total} requests failed, most often {worst}"
        if failed >= FAILED_INVALID * total:
            invalid.append(text)
        elif failed >= FAILED_DEGRADED * total:
            degraded.append(text)
    if measured.cut_off and measured.cut_off >= OPEN_DEGRADED * total:
        degraded.append(f"{measured.cut_off} of {total} requests were still open at the end")
