"""Loading a local model: how long, how much of it in wait for storage, how fast it read."""

from __future__ import annotations

from dataclasses import dataclass

from perfdoctor import stats
from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, Window, ratio

DELAY = "block-IO delay accounting"
BLOCKED = "share of readings with a thread blocked on IO"


@dataclass(frozen=True, slots=True)
class LoadPhase:
    name: str
    window: Window


def load_phases(obs: Observations) -> tuple[LoadPhase, ...]:
    """import, tokenizer, weights, to_device, first_forward as far as reported, in order."""
    found = []
    for sample in obs.samples("load"):
        name, start = sample.labels.get("phase", ""), sample.values.get("started_s")
        length = sample.values.get("seconds")
        if name not in ("total", "prepare", "") and start is not None and length is not None:
            found.append(LoadPhase(name, Window(obs, name, start, start + max(0.0, length))))
    if not found:
        raise NoValue("the load reported no phases")
    return tuple(sorted(found, key=lambda p: p.window.start_s))


def load_window(obs: Observations) -> Window:
    """From the first import to the first forward pass; making the checkpoint is not part of it."""
    phases = load_phases(obs)
    window = Window(obs, "load", phases[0].window.start_s, max(p.window.end_s for p in phases))
    if window.seconds <= 0:
        raise NoValue("the load took no time that was seen")
    return window


def storage_wait(obs: Observations, window: Window) -> Reading:
    """Seconds of a window in which the loading process could not go on before storage answered.

    Delay accounting sums over tasks, so it is cut at the window's length.
    """
    if window.seconds <= 0:
        return Reading(0.0)  # no source: nothing was there to be seen
    try:
        waited = window.change("io", "blkio_delay_s").amount
        return Reading(min(waited, window.seconds), source=DELAY)
    except NoValue:
        blocked = window.gauge("io", "blocked_threads")
        share = sum(v > 0 for v in blocked) / len(blocked)
        return Reading(share * window.seconds, n=len(blocked), source=BLOCKED)


@signal("load.wall", unit="s")
def wall(obs: Observations) -> float:
    """Loading from the first import to the first forward pass, in seconds. Missing for a running server."""
    for sample in obs.samples("load"):
        seconds = sample.values.get("seconds")
        if sample.labels.get("phase") == "total" and seconds is not None:
            return seconds
    return load_window(obs).seconds


@signal("load.storage_wait.seconds", unit="s")
def storage_wait_seconds(obs: Observations) -> Reading:
    """Seconds of loading spent waiting for storage, imports left out: no fix of the model's files helps them.

    From the kernel's block-IO delay where `kernel.task_delayacct` is on, else from how often a thread of the
    process was seen blocked. Device counters are not used: a cgroup limit hides from them. A phase too short
    for a reading counts as no wait. Cross-check: `sysctl -w kernel.task_delayacct=1` and `iotop`.
    """
    found, reason = [], NoValue("the load only imported")
    for phase in load_phases(obs):
        if phase.name != "import":
            try:
                found.append(storage_wait(obs, phase.window))
            except NoValue as error:
                reason = error
    if not any(r.source for r in found):
        raise reason
    seconds = sum(r.value for r in found)
    return Reading(seconds, n=sum(r.n or 0 for r in found) or None, source=_common_source(found))


def _common_source(found: list[Reading]) -> str:
    return " and ".join(dict.fromkeys(r.source for r in found if r.source))


@signal("load.storage_wait.share", unit="share")
def storage_wait_share(obs: Observations) -> Reading:
    """`load.storage_wait.seconds` over the whole load, imports included: what a perfect disk could save."""
    found = storage_wait_seconds.reading(obs)
    return Reading(min(1.0, ratio(found.value, wall.of(obs), "the load's length")), found.n, found.source)


@signal("load.read.rate", unit="bytes/s")
def read_rate(obs: Observations) -> float:
    """Bytes per second the process fetched from storage while it read the weights. 0 from a warm cache."""
    window = _weights(obs)
    amount = window.change("io", "process_read_bytes").amount
    return ratio(amount, window.seconds, "the time of reading the weights")


@signal("load.read.bytes", unit="bytes")
def read_bytes(obs: Observations) -> float:
    """Bytes the process fetched from storage during the whole load. Cross-check: /proc/PID/io read_bytes."""
    return load_window(obs).change("io", "process_read_bytes").amount


@signal("load.file_resident.share", unit="share")
def resident(obs: Observations) -> float:
    """Share of the weight files in the page cache before loading; at 1 storage cannot be the cause.

    Missing when the model's files are not known. Cross-check: `fincore FILE`.
    """
    share = obs.facts.target.file_resident_share
    if share is None:
        raise NoValue("the page cache was not looked at before loading")
    load_window(obs)
    return share


@signal("load.psi_io.share", unit="share")
def psi_io(obs: Observations) -> float:
    """Share of the load in which the kernel counted some task as stalled on IO, system-wide.

    Diluted by whatever other CPUs did, so it supports and never decides (one stall read 45-78 %).
    """
    return min(1.0, load_window(obs).change("io", "psi_some_s").rate)


@signal("load.oncpu.share", unit="share")
def oncpu(obs: Observations) -> float:
    """CPUs kept busy by the process while it read the weights; near 1 means unpacking, not storage."""
    return _weights(obs).change("cpu", "oncpu_s").rate


@signal("load.pcie_rx.p50", unit="bytes/s")
def pcie_rx(obs: Observations) -> Reading:
    """Median traffic to the GPU during the load; pageable copies make 5-8 GB/s."""
    values = load_window(obs).gauge("gpu", "pcie_rx_bytes_per_s")
    return Reading(stats.percentile(values, 0.5) or 0.0, n=len(values))


def _weights(obs: Observations) -> Window:
    for phase in load_phases(obs):
        if phase.name == "weights":
            return phase.window
    raise NoValue("the load reported no weights phase")


SIGNALS = (
    wall,
    storage_wait_seconds,
    storage_wait_share,
    read_rate,
    read_bytes,
    resident,
    psi_io,
    oncpu,
    pcie_rx,
)
