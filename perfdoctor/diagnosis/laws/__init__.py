"""Laws no honest measurement can break. A broken one means a broken probe, count or assumption.

What each says stands in `LAWS`, for `explain`. L8 is no test of a run: it bounds every fix.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfdoctor.diagnosis.laws import device, load
from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.model import Violation

LAWS: Mapping[str, str] = {
    "L1": "Requests in flight are throughput times latency (Little): no more are open than users, and a "
    "server holds no more than were sent, unless others send too.",
    "L2": "Steps a second times bytes a step are no more than memory delivers: the datasheet's bandwidth "
    "on a GPU, one and a half times the measured copy on a CPU.",
    "L3": "Memory in use is no less than the loaded weights.",
    "L4": "A KV cache of so many tokens, times the bytes of a token by the model's shape (2 x layers x KV "
    "heads x head size x bytes of a number), fits into the device beside the weights.",
    "L5": "Requests open at a disk are its rate times its wait: aqu-sz = r/s x r_await + w/s x w_await. "
    "Tested where a tool printed all of them; our own probe reads counters from which they are "
    "computed.",
    "L6": "Bytes read while loading are no less than what of the files was not in the page cache.",
    "L7": "A part takes no longer than the whole: device time within wall time, the server's time of a "
    "request within the client's.",
    "L8": "A fix gains no more than the time that it touches (Amdahl): every promised factor is computed "
    "from the ledger's rows, at most 1 / (1 - share).",
}


def violated_laws(obs: Observations, table: Table) -> tuple[Violation, ...]:
    """Every law this run breaks; a law whose numbers are missing is not broken."""
    found = []
    for law in (*load.LAWS, *device.LAWS):
        try:
            found.append(law(obs, table))
        except NoValue:
            continue
    return tuple(v for v in found if v is not None)
