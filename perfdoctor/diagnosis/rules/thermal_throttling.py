"""The GPU lowers its clocks because of heat.

What: blocked air, a failing fan, a hot room, or a board that protects itself. A lower clock from the power
cap is no such thing: dense matrix products run there, healthy.

Cost: the lost share of clock, of the time that depends on it. Decoding hardly does, since the memory's clock
stays; so little is gained by cooling a GPU that waits for memory or for its host.

Told apart from an idle GPU, which lowers its clocks to save power, by how much it works.
"""

from perfdoctor.diagnosis.rule import Neighbour, Rule, all_of, at_least, below

RULE = Rule(
    cls="throttling",
    title="Heat lowers the GPU's clocks",
    when=all_of(
        at_least("gpu.used", 1, source="the model runs on a GPU"),
        at_least("gpu.clock.thermal.share", 0.01, source="guess: one reading in a hundred is no accident"),
        at_least("gpu.clock.lost.share", 0.05, source="guess: less is not worth a change"),
    ),
    cost=("decode.compute", "prefill.compute"),
    told_apart=(
        Neighbour(
            "an idle GPU, which lowers its clocks anyway",
            below("gpu.graphics_active.steady.p50", 0.20, source="guess: four fifths of the time it rests"),
        ),
    ),
    says=(
        "Thermal throttling in {gpu.clock.thermal.share} of the readings",
        "the clock is {gpu.clock.lost.share} below its highest",
    ),
)
