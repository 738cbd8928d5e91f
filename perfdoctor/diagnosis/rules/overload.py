"""More is asked than the hardware can do, by a server that uses it well.

What: requests are served together on a device that has next to nothing left, and new ones wait. Nothing is
wrong with the server; less load, shorter work or more hardware is the answer.

Cost: the queue time. Told apart from a serial server, whose device is not full, from a full KV cache, and
from too few slots for requests.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least

RULE = Rule(
    cls="overload",
    title="More is asked than the hardware can do",
    when=all_of(
        at_least("server.queue.share", 0.20, source="guess: less is not worth a change"),
        at_least("server.batch.mean", 1.5, source="guess: between one and two at a time"),
        at_least("server.saturation.share", 0.90, source="guess: next to nothing left"),
    ),
    cost=("server_queue",),
    told_apart=(
        Neighbour(
            "kv-cache",
            all_of(
                at_least("engine.kv_usage.max", 0.95, source="guess: full but for the last block"),
                at_least("engine.waiting.mean", 1.0, source="guess: somebody always waits"),
            ),
            refutes=True,
        ),
        Neighbour(
            "cpu-contention",
            at_least("cpu.serving.runq_wait.share", 0.25, source="the limit of cpu-contention"),
            refutes=True,
        ),
        Neighbour(
            "client-limited",
            at_least("client.cpu.share", 0.80, source="an event loop that busy queues its own reads"),
        ),
    ),
    says=(
        "Overloaded: {server.queue.share} of a request is queue on a device that is "
        "{server.saturation.share} full",
        "{server.batch.mean} requests in service at a time",
    ),
)
