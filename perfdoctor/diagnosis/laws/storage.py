"""Laws of storage and of loading: a disk's queue, bytes of files, and how fast they come."""

from __future__ import annotations

import math
import re

from perfdoctor import units
from perfdoctor.diagnosis.laws._law import ROUNDING, Law, need
from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.diagnosis.signals import start
from perfdoctor.model import Sample, Violation

QUEUE_SLACK = 0.5  # guess: means of rate, wait and queue are not those of one instant; discards are left out
QUEUE_ROUNDING = 0.1  # requests
# bytes/s of one PCIe lane, by generation: its transfer rate less the line code (8b/10b, later 128b/130b)
LANE = {1: 250e6, 2: 500e6, 3: 985e6, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
_PCIE = re.compile(r"gen(\d+) x(\d+)")


def disk_queue(obs: Observations, table: Table) -> Violation | None:
    """Requests open at a disk are its rate times its wait."""
    seen = obs.phase("steady")
    rows = [s for s in obs.samples("disk") if seen.start_s <= s.at_s <= seen.end_s]
    pairs = [pair for row in rows if (pair := _queues(row))]
    if not pairs:
        raise NoValue("no tool printed a disk's rate, wait and queue side by side")
    computed, queue = (math.fsum(side) / len(pairs) for side in zip(*pairs, strict=True))
    if abs(computed - queue) <= QUEUE_SLACK * max(computed, queue) + QUEUE_ROUNDING:
        return None
    return Violation(
        law="L5",
        what=f"a disk queue of {queue:.2f} requests, but rate times wait make {computed:.2f}",
        likely="a column was read as another one, or seconds as milliseconds",
        stops=("disk-io",),
    )


def _queues(row: Sample) -> tuple[float, float] | None:
    """(rate times wait, queue) of one disk in one interval, where all of them were printed."""
    queue, reads, writes = row.values.get("aqu_sz"), _open(row, "read"), _open(row, "write")
    return None if queue is None or reads is None or writes is None else (reads + writes, queue)


def _open(row: Sample, kind: str) -> float | None:
    """Requests open at a time by their rate and wait; none where none were made, which then have no wait."""
    rate, wait = row.values.get(f"{kind}s_per_s"), row.values.get(f"{kind[0]}_await_s")
    if rate == 0:
        return 0.0
    return None if rate is None or wait is None else rate * wait


def file_was_read(obs: Observations, table: Table) -> Violation | None:
    """A cold file comes from storage once."""
    size, read = obs.facts.target.file_bytes, need(table, "load.read.bytes")
    if not size:
        raise NoValue("the size of the weight files is not known")
    if not read:
        raise NoValue("no byte was counted: this file system's reads are not")
    cold = size * (1 - need(table, "load.file_resident.share"))
    if read >= cold / 2:
        return None
    return Violation(
        law="L6",
        what=f"{units.size_bytes(read)} read, but {units.size_bytes(cold)} of the files were not cached",
        likely="another process read the file, or the samples do not describe this load",
        stops=("disk-io",),
    )


def weights_cross_the_bus(obs: Observations, table: Table) -> Violation | None:
    """Weights reach a GPU no faster than PCIe delivers them."""
    rate = need(table, "start.read.rate")
    slots = [_PCIE.fullmatch(gpu.pcie or "") for gpu in obs.facts.host.gpus]
    limits = [LANE[int(m[1])] * int(m[2]) for m in slots if m and int(m[1]) in LANE]
    if not limits:
        raise NoValue("the PCIe generation of the server's GPU is not known")
    if rate <= max(limits) * ROUNDING:
        return None
    return Violation(
        law="L6",
        what=f"weights read at {units.quantity(rate, 'bytes/s')}, more than the "
        f"{units.quantity(max(limits), 'bytes/s')} of PCIe",
        likely="size and seconds are of two models, or the weights were on the device already",
        stops=("disk-io",),
    )


def parts_of_a_start(obs: Observations, table: Table) -> Violation | None:
    """The parts of a start lie within the whole of it."""
    whole, parts = start.whole_and_parts(obs)
    summed = math.fsum(parts.values())
    if summed <= whole * ROUNDING + start.ROUNDING_S:
        return None
    return Violation(
        law="L7",
        what=f"parts of the server's start take {units.seconds(summed)}, the whole {units.seconds(whole)}",
        likely="lines of two starts, or of workers side by side, were added up",
        stops=("disk-io",),
    )


LAWS = (
    Law("L5", disk_queue),
    Law("L6", file_was_read),
    Law("L6", weights_cross_the_bus),
    Law("L7", parts_of_a_start),
)
