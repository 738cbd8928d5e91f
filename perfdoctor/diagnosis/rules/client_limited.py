"""The load generator was the bottleneck, so nothing can be said about the server.

What: the process that sends the requests ran out of CPU, waited for one, or stamped its readings late. A slow
client looks exactly like a slow server: tokens wait in its own buffers.

Cost: the whole verdict. Run the client on another machine or core, or ask for less at a time.

Told apart by the client's own numbers alone: they were taken beside every request, on the same clock.
"""

from perfdoctor import trust
from perfdoctor.diagnosis.rule import Rule, any_of, at_least

RULE = Rule(
    cls="client-limited",
    title="The load generator itself was the bottleneck",
    of="measurement",
    when=any_of(
        at_least(
            "client.cpu.share", trust.CPU_INVALID, source="an event loop that busy queues its own reads"
        ),
        at_least("client.runq_wait.share", trust.WAIT_INVALID, source="guess: a quarter of the time unseen"),
        at_least(
            "client.loop_lag.share", trust.LAG_INVALID, source="a fifth of what is measured is the client's"
        ),
        at_least(
            "client.send_late.share", trust.LAG_INVALID, source="a fifth of what is measured is the client's"
        ),
    ),
    says=(
        "Client-limited: the load generator used {client.cpu.share} of a core",
        "it waited for a CPU {client.runq_wait.share} of the time",
        "its event loop ran late by {client.loop_lag.share} of a median request",
    ),
)
