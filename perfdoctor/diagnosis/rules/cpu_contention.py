"""The serving thread is ready to run and has no CPU.

What: other programs, or too many threads of its own, use the cores it needs. It stands in the run queue while
nothing it does is slow. A quota has the same effect and is a state of its own.

Cost: the time in the run queue, of every part of a request. One busy program on the same core takes half.

Told apart from a CPU quota by the group's throttled periods, from a load generator that shares the machine by
its own use of it, and from a server with more threads than cores by how little others use.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, at_least, below
from perfdoctor.diagnosis.rules._conditions import CPU_WAIT

WAITS = at_least("cpu.serving.runq_wait.share", CPU_WAIT, source="guess: a free CPU would give 1.33 x")
QUOTA = at_least("cpu.quota.throttled.share", 0.10, source="guess: the quota ends a tenth of the periods")

RULE = Rule(
    cls="cpu-contention",
    title="The server waits for a CPU that others use",
    when=WAITS,
    cost=("runq_delay",),
    told_apart=(
        Neighbour("cpu-quota", QUOTA, refutes=True),
        Neighbour(
            "the load generator beside it",
            at_least("client.cores.share", 0.25, source="guess: a quarter of the machine is the client's"),
            instead="The load generator and the server share too few CPUs",
        ),
        Neighbour(
            "too many threads of its own",
            below("cpu.others.share", 0.10, source="guess: others use next to nothing"),
            instead="The server runs more threads than it has CPUs, and they wait for one another",
        ),
    ),
    explains=(
        "launch-bound-decode",
        "overload",
    ),
    says=(
        "CPU contention: the serving thread waits for a CPU {cpu.serving.runq_wait.share} of the time",
        "other programs use {cpu.others.share} of the machine",
    ),
)
