"""What several rules ask, each with one limit: a cause and those it is told from cannot drift apart."""

from perfdoctor import trust
from perfdoctor.diagnosis.rule import Neighbour, at_least

CLIENT_LIMITED = Neighbour(
    "client-limited",
    at_least("client.cpu.share", trust.CPU_INVALID, source="an event loop that busy queues its own reads"),
)

CPU_WAIT = 0.25  # share of the serving threads' time that they wait for a CPU
CPU_CONTENDED = at_least("cpu.serving.runq_wait.share", CPU_WAIT, source="the limit of cpu-contention")

GIL_OTHERS = 0.30  # share of the time in which other threads hold the interpreter lock

SERVES_TOGETHER = at_least("server.batch.mean", 1.5, source="guess: between one and two at a time")
DEVICE_FULL = at_least("server.saturation.share", 0.90, source="guess: next to nothing left")
KV_FULL = at_least("engine.kv_usage.max", 0.95, source="guess: full but for the last block")
SOMEBODY_WAITS = at_least("engine.waiting.mean", 1.0, source="guess: somebody always waits")
