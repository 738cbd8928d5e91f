"""Requests wait in line: the server works on one at a time.

What: several users ask at once, a good part of each request passes in the server's queue, and all users
together get no more tokens per second than one user alone. A lock around `generate()`, a worker pool of one,
`max_num_seqs=1`, a default concurrency limit of 1.

Cost: the queue time of every request. One decode step can serve many requests for little more than the price
of one, because its weights are read once for all of them, so this is usually the largest gain there is.

Told apart from an overloaded server, which works on several requests together (then more capacity is the fix,
or less work for each token), from a full KV cache, which also makes requests wait, and from a slow client.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, any_of, at_least, below
from perfdoctor.diagnosis.rules._conditions import CLIENT_LIMITED, DEVICE_FULL, KV_FULL, SERVES_TOGETHER

SCALING = below(
    "throughput.scaling",
    1.2,
    source="guess: a server that batches gains far more than a fifth from users",
)

RULE = Rule(
    cls="scheduling",
    title="The server handles requests one at a time",
    when=all_of(
        at_least("drive.concurrency", 2, source="one user cannot wait for another"),
        at_least("server.queue.share", 0.20, source="guess: less is not worth a change"),
        any_of(SCALING, below("server.batch.mean", 1.2, source="measured by the server: nothing is batched")),
    ),
    cost=("server_queue",),
    told_apart=(
        Neighbour(
            "overload",
            all_of(
                SERVES_TOGETHER,
                DEVICE_FULL,
            ),
            refutes=True,
        ),
        Neighbour(
            "batching without gain",
            SERVES_TOGETHER,
            instead="Overloaded: requests are served together and gain nothing by it, so serving more of "
            "them at a time will not help",
        ),
        Neighbour(
            "kv-cache",
            all_of(
                SERVES_TOGETHER,
                KV_FULL,
            ),
        ),
        CLIENT_LIMITED,
    ),
    experiment=SCALING,
    says=(
        "Serial server: {cost.share} of a request is spent in the server's queue ({cost.seconds})",
        "{drive.concurrency} together get {throughput.scaling} times the tokens of one user alone",
        "{server.batch.mean} in service at a time",
    ),
)
