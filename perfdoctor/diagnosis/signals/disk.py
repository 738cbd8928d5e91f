"""The disk as its own counters show it: traffic, waits and queue of the device that is read most.

From the kernel's counters in a run, from iostat's columns where they were pasted. Blind to a reader that its
control group throttles and to network file systems; `io.blocked.share` sees those.
"""

from __future__ import annotations

from perfdoctor import stats
from perfdoctor.diagnosis.measure import Reading, signal
from perfdoctor.diagnosis.observations import NoValue, Observations, Window, known, ratio

ALL = "all of the host"  # vmstat's sum over devices: used where nothing tells them apart
TOOL = "the tool's own rates"


def _device(window: Window) -> str:
    """The device with most bytes read in the phase."""
    read: dict[str, float] = {}
    for sample in window.observations.samples("disk"):
        rate = sample.values.get("read_bytes_per_s")
        if rate is not None and window.start_s <= sample.at_s <= window.end_s:
            device = sample.labels.get("device", "")
            read[device] = read.get(device, 0.0) + rate
    named = {device: total for device, total in read.items() if device != ALL} or read
    if not named:
        raise NoValue(f"no rate of a disk in the {window.name} phase")
    return max(sorted(named), key=lambda d: named[d])


def _told(window: Window, metric: str) -> Reading:
    values = window.gauge("disk", metric, device=_device(window))
    return Reading(stats.mean(values) or 0.0, n=len(values), source=TOOL)


@signal("disk.read.rate", unit="bytes/s")
def rate(obs: Observations) -> Reading:
    """Bytes read from the device per second of the steady phase. Cross-check: `iostat -x 1`, rkB/s."""
    window = obs.phase("steady")
    try:
        return _told(window, "read_bytes_per_s")
    except NoValue:
        return Reading(window.change("disk", "read_bytes").rate)


@signal("disk.read.peak", unit="bytes/s")
def peak(obs: Observations) -> Reading:
    """The most that the device was seen to read per second, in any interval or by a benchmark of it.

    A floor of what it can do. Missing where neither rates nor a benchmark were pasted.
    Cross-check: `fio --rw=read --bs=1M --iodepth=32 --direct=1`.
    """
    window = obs.phase("steady")
    found = [v for values in (_seen(window), _benchmarked(obs)) for v in values]
    if not found:
        raise NoValue("no rate of a disk was told, and no benchmark of it")
    return Reading(max(found), n=len(found))


def _seen(window: Window) -> list[float]:
    try:
        return window.gauge("disk", "read_bytes_per_s", device=_device(window))
    except NoValue:
        return []


def _benchmarked(obs: Observations) -> list[float]:
    try:
        return [v for s in obs.samples("disk.bench") if (v := s.values.get("read_bytes_per_s")) is not None]
    except NoValue:
        return []


@signal("disk.read.await", unit="s")
def wait(obs: Observations) -> Reading:
    """Mean time of a read from queue to end, in seconds, each read counting once.

    Missing where nothing was read. Old versions of iostat tell it of reads and writes together, and it is
    missing where there were both. Cross-check: `iostat -x 1`, r_await, in ms.
    """
    window = obs.phase("steady")
    try:
        device = _device(window)
    except NoValue:
        took, reads = window.change("disk", "read_time_s"), window.change("disk", "reads")
        return Reading(ratio(took.amount, reads.amount, "the number of reads"), n=round(reads.amount))
    weighed = [pair for pair in _waits(window, device) if pair[1] > 0]
    whole = sum(reads for _, reads in weighed)
    return Reading(
        ratio(sum(w * r for w, r in weighed), whole, "the number of reads"), n=len(weighed), source=TOOL
    )


def _waits(window: Window, device: str) -> list[tuple[float, float]]:
    """(mean wait, reads per second) of each interval that tells both."""
    found = []
    for sample in window.observations.samples("disk"):
        inside = window.start_s <= sample.at_s <= window.end_s and sample.labels.get("device") == device
        reads, told = sample.values.get("reads_per_s"), sample.values.get("r_await_s")
        if told is None and sample.values.get("writes_per_s") == 0:
            told = sample.values.get("await_s")
        if inside and reads is not None and told is not None:
            found.append((told, reads))
    return found


@signal("disk.queue.mean", unit="requests")
def queue(obs: Observations) -> Reading:
    """Requests open at the device at a time, reads and writes. Near 1: one reader that waits for each.

    Cross-check: `iostat -x 1`, aqu-sz.
    """
    window = obs.phase("steady")
    try:
        return _told(window, "aqu_sz")
    except NoValue:
        reads, writes = window.change("disk", "read_time_s"), window.change("disk", "write_time_s")
        return Reading(reads.rate + writes.rate)


@signal("disk.busy.share", unit="share")
def busy(obs: Observations) -> Reading:
    """Share of the steady phase in which the device had any request open, 0-1.

    No measure of saturation: a drive that serves 64 at once is busy with one. Cross-check: `iostat -x 1`,
    %util.
    """
    window = obs.phase("steady")
    try:
        found = _told(window, "busy_share")
        return Reading(min(1.0, found.value), found.n, found.source)
    except NoValue:
        return Reading(min(1.0, window.change("disk", "busy_time_s").rate))


@signal("disk.read.size", unit="bytes")
def size(obs: Observations) -> float:
    """Mean size of a read in bytes: small ones cost their wait each. Missing where nothing was read."""
    window = obs.phase("steady")
    reads = known(lambda: _told(window, "reads_per_s").value)
    if reads is None:
        reads = window.change("disk", "reads").rate
    return ratio(rate.of(obs), reads, "the number of reads")


SIGNALS = (rate, peak, wait, queue, busy, size)
