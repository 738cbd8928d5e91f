"""Laws no honest measurement can break. A broken one means a broken probe, count or assumption.

L1 requests in flight = throughput x latency · L2 steps/s x bytes/step <= bandwidth
L3 memory used >= weights · L6 bytes read over the load >= what was not in the cache
L7 device time <= wall time.

L4 (KV bytes from the model's shape) and L5 (r_await = aqu-sz / IOPS) hold by construction in our own probes,
and L8 (a fix gains no more than the time it touches) bounds every fix, so these are not tested here.
"""

from __future__ import annotations

from collections.abc import Callable

from perfdoctor import units
from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.diagnosis.signals import step
from perfdoctor.model import Violation

ROUNDING = 1.05
CPU_COPY_SLACK = 1.5  # reading alone outruns the calibrated copy, which also writes
CACHE_BYTES = 64e6  # guess: weights smaller than this may stay in a CPU's caches
FOREIGN_LOAD = 1.5  # guess: half again as many requests inside the server as we have open


def violated_laws(obs: Observations, table: Table) -> tuple[Violation, ...]:
    """Every law this run breaks; a law whose numbers are missing is not broken."""
    found = []
    for law in _LAWS:
        try:
            found.append(law(obs, table))
        except NoValue:
            continue
    return tuple(v for v in found if v is not None)


def _need(table: Table, name: str) -> float:
    value = table[name].value
    if value is None:
        raise NoValue(name)
    return value


def _users(obs: Observations, table: Table) -> Violation | None:
    """A closed loop cannot have more open requests than users. An open loop has none; its requests count."""
    if obs.facts.scenario.load.arrival != "closed":
        return None
    open_mean, users = _need(table, "drive.in_flight.mean"), _need(table, "drive.concurrency")
    if open_mean <= users * ROUNDING + 0.1:
        return None
    return Violation(
        law="L1",
        what=f"{open_mean:.1f} requests in flight on average, but only {users:.0f} users",
        likely="stamps of two phases are mixed, or requests ended without being recorded",
        stops=("scheduling", "insufficient-load"),
    )


def _foreign_load(obs: Observations, table: Table) -> Violation | None:
    """Little's law seen from both ends: the server cannot hold more than was sent, unless others send too."""
    ours = _need(table, "drive.in_flight.mean")
    steady = obs.phase("steady")
    held = [
        sum(values) / len(values)
        for name in ("running", "waiting")
        if (values := steady.gauge("engine", name))
    ]
    if sum(held) <= ours * FOREIGN_LOAD + 1:
        return None
    return Violation(
        law="L1",
        what=f"the server holds {sum(held):.1f} requests, this run had {ours:.1f} open",
        likely="somebody else is using the server at the same time",
        stops=("scheduling",),
    )


def _bandwidth(obs: Observations, table: Table) -> Violation | None:
    """Memory cannot deliver more than its bandwidth."""
    rate = _need(table, "roof.implied.rate")
    if table["gpu.used"].value:
        limit, what = _need(table, "roof.physical.rate"), "the datasheet's"
    elif _need(table, "step.bytes") < CACHE_BYTES:
        return None
    else:
        limit, what = _need(table, "roof.achievable.rate") * CPU_COPY_SLACK, "1.5 times the copy's"
    if rate <= limit:
        return None
    return Violation(
        law="L2",
        what=f"the pace of tokens implies {units.quantity(rate, 'bytes/s')}, more than {what} "
        f"{units.quantity(limit, 'bytes/s')}",
        likely="the model is smaller or of a narrower dtype than assumed, or a step emits several tokens",
        stops=("memory-bandwidth", "launch-overhead"),
    )


def _weights_fit(obs: Observations, table: Table) -> Violation | None:
    """A loaded model takes at least the room of its weights."""
    weights = obs.facts.target.weights_bytes
    if not weights or not obs.facts.target.device:
        return None
    if table["gpu.used"].value:
        used = _need(table, "gpu.mem_used.max")
    else:
        used = max(obs.phase("steady").gauge("memory", "rss_bytes"))
    if used >= weights / ROUNDING:
        return None
    return Violation(
        law="L3",
        what=f"{units.size_bytes(used)} of memory in use, but the weights are {units.size_bytes(weights)}",
        likely="another dtype or model than reported, or the wrong process or device was watched",
        stops=("memory-bandwidth", "launch-overhead"),
    )


def _file_was_read(obs: Observations, table: Table) -> Violation | None:
    """A cold file must come from storage once. None at all: a file system whose reads are not counted."""
    size, read = obs.facts.target.file_bytes, _need(table, "load.read.bytes")
    cold = (size or 0) * (1 - _need(table, "load.file_resident.share"))
    if not read or read >= cold / 2:
        return None
    return Violation(
        law="L6",
        what=f"{units.size_bytes(read)} read, but {units.size_bytes(cold)} of the files were not cached",
        likely="another process read the file, or the samples do not describe this load",
        stops=("disk-io",),
    )


def _device_time(obs: Observations, table: Table) -> Violation | None:
    """The union of kernel times cannot exceed the time in which they ran; nor can operators of one thread."""
    load_free = step.step_value(obs, "profiled_wall_s")
    for name in ("device_s", "kernel_s"):
        try:
            busy = step.step_value(obs, name)
        except NoValue:
            continue
        if busy > load_free * ROUNDING:
            return Violation(
                law="L7",
                what=f"{units.seconds(busy)} of device time in a step of {units.seconds(load_free)}",
                likely="kernels of several streams were added up, or steps were counted wrongly",
                stops=("launch-overhead", "memory-bandwidth"),
            )
    return None


_LAWS: tuple[Callable[[Observations, Table], Violation | None], ...] = (
    _users,
    _foreign_load,
    _bandwidth,
    _weights_fit,
    _file_was_read,
    _device_time,
)
