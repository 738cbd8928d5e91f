"""The GPU allocator asks the driver for memory again and again.

What: the cache of the allocator is emptied after each step (`empty_cache()`), switched off, or too fragmented
to serve a request, so blocks are returned to the driver and fetched anew, each with a wait for the device.

Cost: the calls' time, not the ratio of reserved to allocated memory, which is caching at work. A few retries
in a run cost microseconds.

Told apart from a full device, where the same counters rise until it runs out of memory, by the run going on.
"""

from perfdoctor.diagnosis.rule import Rule, all_of, any_of, at_least

RULE = Rule(
    cls="fragmentation",
    title="The GPU allocator works against the driver",
    when=all_of(
        at_least("gpu.used", 1, source="the model runs on a GPU"),
        any_of(
            at_least(
                "allocator.calls_per_token",
                2.0,
                source="guess: a warm allocator asks the driver for nothing; emptied each token, for dozens",
            ),
            at_least("allocator.retries_per_s", 1.0, source="guess: a flush of the cache every second"),
        ),
    ),
    cost=("allocator",),
    says=(
        "Allocator churn: {allocator.calls_per_token} driver calls a token",
        "{allocator.retries_per_s} flushes of the whole cache a second",
    ),
)
