"""A CPU quota stops the server in the middle of its work.

What: the control group (a container's `--cpus`, a pod's limit) has used up its share of the period, so all
its threads stand still until the next one, 100 ms later at most, while the host looks idle.

Cost: the stopped time, which counts as waiting in the run queue. More threads than the quota has cores make
it worse: they use the share up in a fraction of the period.

Told apart from other programs on the same cores by the group's own count of throttled periods.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least

RULE = Rule(
    cls="cpu-contention",
    title="A CPU quota stops the server",
    when=all_of(
        at_least("cpu.quota.throttled.share", 0.10, source="guess: the quota ends a tenth of the periods"),
        at_least("cpu.serving.runq_wait.share", 0.10, source="guess: less is not worth a change"),
    ),
    cost=("runq_delay",),
    told_apart=(
        Neighbour(
            "cpu-contention",
            at_least("cpu.others.share", 0.80, source="guess: others fill the machine, quota or not"),
        ),
    ),
    explains=(
        "launch-bound-decode",
        "overload",
    ),
    says=(
        "CPU quota: it ran out in {cpu.quota.throttled.share} of the periods",
        "the serving thread stood still {cpu.serving.runq_wait.share} of the time",
        "the host's CPUs were idle {cpu.host.idle.share}",
    ),
)
