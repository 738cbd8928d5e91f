"""More is asked than the hardware can do, by a server that uses it well.

What: requests are served together on a device that has next to nothing left, and new ones wait. Nothing is
wrong with the server; less load, shorter work or more hardware is the answer.

Cost: the queue time. Told apart from a serial server, whose device is not full, from a full KV cache, and
from too few slots for requests.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least
from perfdoctor.diagnosis.rules._conditions import (
    CLIENT_LIMITED,
    CPU_CONTENDED,
    DEVICE_FULL,
    KV_FULL,
    SERVES_TOGETHER,
    SOMEBODY_WAITS,
)

RULE = Rule(
    cls="overload",
    title="More is asked than the hardware can do",
    when=all_of(
        at_least("server.queue.share", 0.20, source="guess: less is not worth a change"),
        SERVES_TOGETHER,
        DEVICE_FULL,
    ),
    cost=("server_queue",),
    told_apart=(
        Neighbour(
            "kv-cache",
            all_of(
                KV_FULL,
                SOMEBODY_WAITS,
            ),
            refutes=True,
        ),
        Neighbour(
            "cpu-contention",
            CPU_CONTENDED,
            refutes=True,
        ),
        CLIENT_LIMITED,
    ),
    says=(
        "Overloaded: {server.queue.share} of a request is queue on a device that is "
        "{server.saturation.share} full",
        "{server.batch.mean} requests in service at a time",
    ),
)
