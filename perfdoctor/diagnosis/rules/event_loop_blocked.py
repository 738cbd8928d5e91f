"""Something blocks the server's event loop, and everybody waits for it.

What: an async handler that sleeps, computes or calls a blocking library; nothing else of that process can
answer meanwhile, so all streams pause at the same instants and a question that costs nothing is answered
late.

Cost: the pauses. Percentiles of token gaps hide them: a loop that is blocked half of the time halves the
throughput and leaves p95 of the gaps where it was.

Told apart from long steps of an engine in another process (the front end answers at once), from contention
for the interpreter's lock and for CPUs.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least
from perfdoctor.diagnosis.rules._conditions import CLIENT_LIMITED, CPU_CONTENDED, GIL_OTHERS

RULE = Rule(
    cls="event-loop",
    title="The server's event loop is blocked",
    when=all_of(
        at_least("stall.shared.share", 0.10, source="guess: less is not worth a change"),
        at_least("health.unanswered.share", 0.10, source="guess: the same for a question that costs nothing"),
    ),
    cost=("loop_stall",),
    told_apart=(
        Neighbour(
            "gil-contention",
            at_least("gil.other.share", GIL_OTHERS, source="the limit of gil-contention"),
        ),
        Neighbour(
            "cpu-contention",
            CPU_CONTENDED,
        ),
        CLIENT_LIMITED,
    ),
    explains=("serial-server",),
    says=(
        "Blocked event loop: all streams stand still together {stall.shared.share} of the time",
        "for {stall.shared.p50} each time",
        "a question that costs nothing goes unanswered {health.unanswered.share} of the time",
    ),
)
