"""Laws no honest measurement can break. A broken one means a broken probe, count or assumption.

L1 requests in flight = throughput x latency · L2 steps/s x bytes/step <= bandwidth
L3 memory used >= weights · L6 bytes read over the load >= what was not in the cache
L7 a part takes no longer than the whole: device time <= wall time, the server's time <= the client's.

L4 (KV bytes from the model's shape) and L5 (r_await = aqu-sz / IOPS) hold by construction in our own probes,
and L8 (a fix gains no more than the time it touches) bounds every fix, so these are not tested here.
"""

from __future__ import annotations

from perfdoctor.diagnosis.laws import device, load
from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.model import Violation


def violated_laws(obs: Observations, table: Table) -> tuple[Violation, ...]:
    """Every law this run breaks; a law whose numbers are missing is not broken."""
    found = []
    for law in (*load.LAWS, *device.LAWS):
        try:
            found.append(law(obs, table))
        except NoValue:
            continue
    return tuple(v for v in found if v is not None)
