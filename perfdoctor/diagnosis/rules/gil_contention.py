"""Another thread holds Python's lock while the model needs it.

What: a thread of the serving process that does not run the model is Python code that rarely lets go: a
computation in a handler, a busy loop, a parser. The model's thread gives the lock up with each of its
thousand launches a token, and gets it back up to 5 ms later each time (`sys.getswitchinterval`).

Cost: the time in which the lock is in other hands. One such thread brought eager decoding on an H200 from
0.05 to 14.6 s a token. A thread that computes in native code with the lock released costs nothing here.

Told apart from a model that is itself Python's work (one thread, no contention), from CPUs that are taken by
others, from a loop that sleeps with the lock released.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, at_least
from perfdoctor.diagnosis.rules._conditions import CLIENT_LIMITED, GIL_OTHERS

OTHERS = at_least(
    "gil.other.share", GIL_OTHERS, source="guess: a third of the time the lock is in other hands"
)

RULE = Rule(
    cls="gil",
    title="Another Python thread holds the interpreter lock",
    when=OTHERS,
    cost=("gil_wait",),
    told_apart=(
        Neighbour(
            "cpu-contention",
            at_least("cpu.serving.runq_wait.share", 0.30, source="guess: waiting for a CPU is no small part"),
        ),
        CLIENT_LIMITED,
    ),
    support=(at_least("gil.held.share", 0.60, source="guess: Python is most of the work"),),
    explains=(
        "launch-bound-decode",
        "event-loop-blocked",
    ),
    says=(
        "Lock contention: threads that do not run the model hold Python's lock {gil.other.share} of the time",
        "all threads together {gil.held.share}",
    ),
)
