"""Requests wait for room in the KV cache, or are thrown out of it and started over.

What: more tokens are in flight than the cache holds. The engine then lets requests wait although it could
compute for them, or preempts running ones and computes their prompts again.

Cost: the waiting, and each preempted request's work. Judged by what happened during the run, never by how
full the cache is: 95 % with nobody waiting is good use.

Told apart from a limit on the number of requests (the cache is then not full) and from a device that has no
time left (requests are admitted, and slow).
"""

from perfdoctor.diagnosis.rule import Rule, all_of, any_of, at_least
from perfdoctor.diagnosis.rules._conditions import CLIENT_LIMITED, KV_FULL, SOMEBODY_WAITS

RULE = Rule(
    cls="kv-cache",
    title="The KV cache is too small for the requests in flight",
    when=any_of(
        at_least("engine.preempted.share", 0.02, source="guess: one request in fifty is started over"),
        all_of(
            KV_FULL,
            SOMEBODY_WAITS,
            at_least("server.queue.share", 0.10, source="guess: less is not worth a change"),
        ),
    ),
    cost=("server_queue",),
    told_apart=(CLIENT_LIMITED,),
    explains=(
        "overload",
        "serial-server",
    ),
    says=(
        "KV cache full: it reached {engine.kv_usage.max}",
        "{engine.preempted.share} of the requests were thrown out and started over",
        "{engine.waiting.mean} requests waited on average",
    ),
)
