"""Laws no honest measurement can break. A broken one means a broken probe, count or assumption.

Each is broken, holds, or cannot be tested with the numbers of this run, and then says what is missing. What
they say altogether stands in `LAWS`, for `explain`.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfdoctor.diagnosis.laws import device, load, storage
from perfdoctor.diagnosis.laws._law import Law
from perfdoctor.diagnosis.measure import Table
from perfdoctor.diagnosis.observations import NoValue, Observations
from perfdoctor.model import LawState, Violation

LAWS: Mapping[str, str] = {
    "L1": "Requests in flight are throughput times latency (Little): no more are open than users, and a "
    "server holds no more than were sent, unless others send too.",
    "L2": "Steps a second times bytes a step are no more than memory delivers: the datasheet's bandwidth "
    "on a GPU, one and a half times the measured copy on a CPU.",
    "L3": "Memory in use is no less than the loaded weights.",
    "L4": "Bytes of a token in the KV cache follow from the model's shape: 2 x layers x KV heads x head size "
    "x bytes of a number. Those of all tokens the server has room for fit into the device beside the "
    "weights, and the cache's size by the server's log over its tokens is that number, or half, a quarter or "
    "twice of it where it holds numbers of another width.",
    "L5": "Requests open at a disk are its rate times its wait: aqu-sz = r/s x r_await + w/s x w_await, so "
    "r_await = aqu-sz / IOPS where it only reads. Tested where a tool printed all of them; our own probe "
    "reads counters from which they are computed.",
    "L6": "Bytes read while loading are no less than what of the files was not in the page cache, and "
    "weights reach a GPU no faster than its PCIe slot delivers bytes.",
    "L7": "A part takes no longer than the whole: device time within wall time, the server's time of a "
    "request within the client's, parts of a start within the start.",
    "L8": "A fix gains no more than the time that it touches (Amdahl): every promised factor is computed "
    "from the ledger's rows, at most 1 / (1 - share).",
}


def check(obs: Observations, table: Table) -> tuple[tuple[LawState, ...], tuple[Violation, ...]]:
    """The state of every law but L8, which is about the findings, and the impossible numbers themselves."""
    states, broken = [], []
    for law in sorted((*load.LAWS, *device.LAWS, *storage.LAWS), key=lambda law: law.name):
        state, violation = _state(law, obs, table)
        states.append(state)
        if violation:
            broken.append(violation)
    return tuple(states), tuple(broken)


def _state(law: Law, obs: Observations, table: Table) -> tuple[LawState, Violation | None]:
    try:
        violation = law.test(obs, table)
    except NoValue as missing:
        return LawState(law=law.name, says=law.says, status="unknown", reason=missing.reason), None
    if violation is None:
        return LawState(law=law.name, says=law.says, status="holds"), None
    return LawState(law=law.name, says=law.says, status="broken", reason=violation.what), violation
