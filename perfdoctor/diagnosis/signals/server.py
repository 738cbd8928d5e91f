"""What the server did with the requests: waiting, serving together, room in its cache."""

from __future__ import annotations

from perfdoctor import latency, stats
from perfdoctor.diagnosis import counted, spans
from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, known, ratio
from perfdoctor.diagnosis.signals import cpu, gil, gpu

PYTHON_RARE = 0.10  # of the time; guess: below it Python only hands work out


@signal("server.queue.mean", unit="s")
def queue(obs: Observations) -> Reading:
    """Mean time a steady request waited inside the server before anyone worked on it, in seconds.

    From the server's stamps, else its histograms, else timings it streams, else the growth of TTFT over one
    request at a time. Missing when none of these exists. Cross-check: the server's queue-time metric.
    """
    if counted.watches(obs):
        return Reading(counted.mean_of(obs, "queue"), source=counted.SOURCE)
    found = spans.split_requests(obs)
    if not found.has("server_queue"):
        raise NoValue("no server stamps, histograms or streamed timings, and no baseline phase to compare")
    return Reading(found.mean("server_queue"), n=len(found.requests), source=found.source)


@signal("server.queue.share", unit="share")
def queue_share(obs: Observations) -> Reading:
    """Queue time as a share of the mean request time, 0-1. Missing like `server.queue.mean`."""
    if counted.watches(obs):
        try:
            share = ratio(counted.mean_of(obs, "queue"), counted.mean_of(obs, "e2e"), "the end to end")
            return Reading(share, source=counted.SOURCE)
        except NoValue:
            return Reading(counted.queue_share(obs), source="Little's law, from the server's gauges")
    whole = stats.mean([s.total_s for s in spans.split_requests(obs).requests]) or 1.0
    found = queue.reading(obs)
    return Reading(found.value / whole, found.n, found.source)


@signal("server.batch.mean", unit="requests")
def batch(obs: Observations) -> Reading:
    """Requests the server worked on at a time, averaged over the time it worked; about 1 when it is serial.

    From its stamps, else the running gauge, else the timings it streams, else a declared limit of 1.
    Missing when none exists. Cross-check: the server's running-requests gauge.
    """
    for source in (_batch_by_stamps, _batch_by_gauge, _batch_by_streamed_timings):
        try:
            return source(obs)
        except NoValue:
            continue
    if obs.facts.target.max_batch == 1:
        return Reading(1.0, source="the server's declared limit")
    raise NoValue("the server does not say how many requests it works on together")


def _batch_by_stamps(obs: Observations) -> Reading:
    window = obs.phase("steady")
    served = [
        (s.values.get("started_s"), s.values.get("done_s") or s.values.get("last_token_s"))
        for s in obs.samples("serve")
    ]
    whole = [(a, b) for a, b in served if a is not None and b is not None]
    inside = [(max(a, window.start_s), min(b, window.end_s)) for a, b in whole]
    return _overlap([(a, b) for a, b in inside if b > a], spans.STAMPS)


def _batch_by_gauge(obs: Observations) -> Reading:
    running = [v for v in counted.gauge(obs, "running") if v > 0]
    if not running:
        raise NoValue("the server's running gauge stayed at zero")
    return Reading(stats.mean(running) or 0.0, n=len(running), source="the server's running gauge")


def _batch_by_streamed_timings(obs: Observations) -> Reading:
    found = [
        (r.last_token_s - r.server_decode_s - r.server_prefill_s, r.last_token_s)
        for r in obs.ok("steady")
        if r.last_token_s is not None and r.server_decode_s is not None and r.server_prefill_s is not None
    ]
    return _overlap(found, spans.STREAMED)


def _overlap(worked: list[tuple[float, float]], source: str) -> Reading:
    """Summed work over the time in which any work was done."""
    covered, reached = 0.0, float("-inf")
    for start, end in sorted(worked):
        if end > reached:
            covered += end - max(start, reached)
            reached = end
    if covered <= 0:
        raise NoValue("no work of the server falls into the steady phase")
    return Reading(sum(b - a for a, b in worked) / covered, n=len(worked), source=source)


@signal("server.saturation.share", unit="share")
def saturation(obs: Observations) -> Reading:
    """The busiest resource of the server, as a share of what it can do: memory, tensor units, or CPUs.

    Where the model runs on the CPU, a serving thread that leaves Python's lock alone counts too: it computes
    in native code, and a server of few threads is full long before the host is. Decides between a server that
    wastes its device and one that needs more of it. Missing when no counter of the device that runs the model
    could be read.
    """
    found = {
        "GPU memory bandwidth": known(lambda: gpu.DRAM.of(obs) / gpu.DRAM_FULL),
        "GPU tensor units": known(lambda: gpu.TENSOR.of(obs)),
    }
    if gpu.on_gpu.of(obs) == 0:
        found["host CPUs"] = known(lambda: 1 - cpu.host_idle.of(obs))
        found["native compute threads"] = known(lambda: _native_thread(obs))
    present = {name: value for name, value in found.items() if value is not None}
    if not present:
        raise NoValue("no counter of the device was read")
    name = max(present, key=lambda n: present[n])
    return Reading(min(1.0, present[name]), source=name)


def _native_thread(obs: Observations) -> float:
    """How busy the serving thread is, where it is native code that keeps it so."""
    if gil.held.of(obs) >= PYTHON_RARE:
        raise NoValue("the server's threads run Python")
    return cpu.busy.of(obs)


@signal("engine.kv_usage.max", unit="share")
def kv_usage(obs: Observations) -> float:
    """Highest use of the server's KV cache in the steady phase, 0-1. High with nobody waiting is good use."""
    return max(counted.gauge(obs, "kv_usage"))


@signal("engine.waiting.mean", unit="requests")
def waiting(obs: Observations) -> float:
    """Requests in the server's waiting queue, mean of its gauge over the steady phase."""
    return stats.mean(counted.gauge(obs, "waiting")) or 0.0


@signal("engine.running.mean", unit="requests")
def running(obs: Observations) -> float:
    """Requests the server worked on, mean of its gauge over the steady phase. A gauge can miss short ones."""
    return stats.mean(counted.gauge(obs, "running")) or 0.0


@signal("engine.preemptions", unit="times")
def preemptions(obs: Observations) -> float:
    """Requests the server threw out of its KV cache during the steady phase; a gain, not a total.

    From its metrics, else its log (`--log FILE`). Missing where neither tells: some engines log none.
    """
    return counted.gained(obs, "preemptions")


@signal("engine.preempted.share", unit="share")
def preempted(obs: Observations) -> float:
    """The same per request that the server finished in the steady phase; above 1 when some were hit twice."""
    return ratio(preemptions.of(obs), counted.requests(obs), "the number of finished requests")


@signal("context.mean", unit="tokens")
def context(obs: Observations) -> float:
    """Tokens a decode step attends to, averaged over a request: its prompt and half of its answer."""
    found = latency.present(
        None if r.prompt_tokens is None else r.prompt_tokens + (r.output_tokens or 0) / 2
        for r in obs.ok("steady")
    )
    if not found:
        raise NoValue("the server does not report prompt tokens")
    return stats.mean(found) or 0.0


SIGNALS = (queue, queue_share, batch, saturation, kv_usage, waiting, running, preemptions, preempted, context)
